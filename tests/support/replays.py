# SPDX-License-Identifier: Apache-2.0
"""A recording sent to a controller of its own, and what that controller answers then. Behind
scripts/replay-regress, replay-load and replay-chaos."""
import contextlib
import json
import pathlib

import processes

RECORDINGS = processes.ROOT / "tests" / "recordings"
GOLDEN = processes.ROOT / "tests" / "golden" / "replay"


def all_recordings():
    return sorted(RECORDINGS.glob("*.weftr"))


@contextlib.contextmanager
def private():
    """A stage with a controller that nobody else talks to; it must be alive in the end."""
    with processes.Stage() as stage:
        controller = stage.controller("--store-age", "87840h")  # recordings are kept for years
        yield stage
        if controller.poll() is not None:
            raise processes.Failed("the controller ended with %d" % controller.returncode)


def replay(stage, path, *options):
    """The numbers that `weft replay` prints; at full speed."""
    line, = stage.json("replay", path, "--speed", "max", *options, timeout=120)
    return line


def answers(stage):
    """What users see of all that came in: (the table of tasks, every execution as a line of JSON)."""
    return stage.weft("tasks", env={"COLUMNS": "100"}).stdout, stage.weft("tasks", "--each", "--json").stdout


def of(path, *options):
    """(numbers, table, executions) of a recording replayed alone."""
    with private() as stage:
        numbers = replay(stage, path, *options)
        return numbers, *answers(stage)


def parse(lines):
    return [json.loads(line) for line in lines.splitlines()]


def golden_of(path):
    name = pathlib.Path(path).stem
    return GOLDEN / (name + ".txt"), GOLDEN / (name + ".jsonl")

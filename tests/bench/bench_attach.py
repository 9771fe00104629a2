#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long joining takes: from the start of `weft attach` to a probe that works under an
instruction ("armed"), and for how long a thread of the process stood still. Real VMs, idle.
"""
import json
import os
import pathlib
import random
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "tests" / "flow")]
import processes  # noqa: E402
from fixtures_probe import ACTIVE, memory_path, state  # noqa: E402
from rows import FAILED, row, spread  # noqa: E402

ROUNDS, MANY = 21, 20
SLEEPER = "import time\nwhile True: time.sleep(0.2)"


def is_armed(pid):
    try:
        return state(pid)[0] == ACTIVE
    except (OSError, TypeError):
        return False  # no memory there yet


def arm(stage, pids):
    """Milliseconds until all of them are armed, and what `weft attach` said of each."""
    began = time.monotonic()
    done = stage.weft("attach", "--json", *pids)
    processes.wait_until(lambda: all(map(is_armed, pids)), 10, "armed probes", 0.0005)
    spent = (time.monotonic() - began) * 1e3
    return spent, [json.loads(line) for line in done.stdout.splitlines()]


def leave(stage, pids):
    stage.weft("detach", *pids)
    assert not any(map(memory_path, pids)), "left"


def one_kind(stage, what, pid, must_ms):
    times, stops = [], []
    for _ in range(ROUNDS):
        spent, said = arm(stage, [pid])
        times.append(spent)
        stops.append(said[0]["stopped_us"] / 1e3)
        leave(stage, [pid])
    row("%s: `weft attach` to armed" % what, statistics.median(times), "ms", must_ms, spread(times, "ms"))
    return stops


def main():
    with processes.Stage(random.Random(1)) as stage:
        stage.controller()
        stage.weft("instruct", "--on", "*")
        python = stage.app("http", "front")
        stops = one_kind(stage, "CPython", python.pid, 30)
        row("CPython: a thread of it stands still", statistics.median(stops), "ms", 0.5, spread(stops, "ms"))
        try:
            one_kind(stage, "JVM", stage.app("jvm", "orders").pid, 50)
        except processes.Missing as missing:
            print("JVM: missing: %s" % missing)
        many = [stage.start([processes.PYTHON, "-c", SLEEPER]).pid for _ in range(MANY)]
        time.sleep(0.5)  # they start
        times = []
        for _ in range(3):
            spent, _ = arm(stage, many)
            times.append(spent / 1e3)
            leave(stage, many)
        row("%d VMs at once: `weft attach` to all armed" % MANY, statistics.median(times), "s", 1.5, spread(times, "s"))
    return 1 if FAILED else 0


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    sys.exit(main())

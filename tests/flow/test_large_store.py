# SPDX-License-Identifier: Apache-2.0
"""Of a store of many tasks an even part is read and the rest counted: what is counted, and which filters
hold, is the same as if every task were looked at by itself."""
import collections
import json
import re
import signal

import processes
import pytest
import replays

PATH = replays.RECORDINGS / "trouble.weftr"
LIMITS = (processes.ROOT / "common" / "limits.h").read_text()
READ = int(re.search(r"WEFT_ANALYSE_TREES_READ\s*(?:\\\s*)?(\d+)", LIMITS).group(1))


@pytest.fixture(scope="module")
def stored():
    """(stage, every task as JSON): more than are read, all of them in the store."""
    with processes.Stage() as stage:
        controller = stage.controller()
        tasks = replays.replay(stage, PATH)["tasks"]
        replays.replay(stage, PATH, "--repeat", READ * 4 // (3 * tasks))
        controller.send_signal(signal.SIGTERM)
        assert controller.wait(60) == 0
        stage.controller()
        every = replays.parse(stage.weft("tasks", "--each", "--json", "--limit", 5 * READ, timeout=120).stdout)
        every = [task for task in every if task["kind"] == "task"]
        assert len(every) > READ
        yield stage, every


def failed(task):
    return any(s["error"] and s["hop"] != "opaque" for s in task["subtasks"]) or \
        (task["subtasks"][0]["status"] or 0) >= 500


def service(task):
    return task["subtasks"][0]["service"]


def table(stage, *options):
    lines = stage.weft("tasks", "--json", *options, timeout=60).stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    return {row["name"]: (row["executions"], row["errors"], row["max_ns"]) for row in rows if "executions" in row}


def counted(tasks):
    names = collections.defaultdict(list)
    for task in tasks:
        names[task["name"]].append(task)
    return {name: (len(of), sum(map(failed, of)), max(task["duration_ns"] for task in of))
            for name, of in names.items()}


def test_counts(stored):
    stage, every = stored
    assert table(stage) == counted(every)


def test_filters(stored):
    stage, every = stored
    slower_ms = sorted(task["duration_ns"] for task in every)[len(every) // 2] // 1000000
    name, front = every[0]["name"], service(every[0])
    assert table(stage, "--errors") == counted(filter(failed, every))
    assert table(stage, "--slower", "%dms" % slower_ms) == \
        counted(t for t in every if t["duration_ns"] >= slower_ms * 1000000)
    assert table(stage, "--name", name) == counted(t for t in every if t["name"] == name)
    assert table(stage, "--service", front) == counted(t for t in every if service(t) == front)
    assert table(stage, "--service", "nobody") == {}

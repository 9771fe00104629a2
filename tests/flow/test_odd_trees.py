# SPDX-License-Identifier: Apache-2.0
"""Trees that nobody would draw: very wide, very deep, circles, one request captured by thousands, two
roots, more subtasks than are kept. Bounded, labelled, and no view breaks."""
import json
import os
import re

import perfetto
import processes
import pytest
from reporter import CAPTURE, EMBED, MS, ROOT_FLAG, Reporter, report

KEPT = 16384  # WEFT_SUBTASKS_PER_TASK_MAX
NAMES = ("GET /top", "GET /x", "GET /y")
START = 10**12


def call(reporter, task, number, caller, start_ns, end_ns, request=None, embed=True):
    """Subtask `number`, called by subtask `caller`: both copies of its request."""
    request = request or 10**6 + number
    if embed:
        reporter.add(EMBED, task, request, caller, start_ns - 1000, end_ns + 1000, name=1)
    reporter.add(CAPTURE, task, request, number, start_ns, end_ns, name=1)


def top(reporter, task, number=1, end_ns=START + 1000 * MS):
    reporter.add(CAPTURE, task, 0, number, START, end_ns, flags=ROOT_FLAG, instruction=1)


def wide(reporter, task):
    top(reporter, task)
    for n in range(10000):
        call(reporter, task, 2 + n, 1, START + n * 10000, START + n * 10000 + 5000)


def deep(reporter, task):
    top(reporter, task)
    for n in range(10000):
        call(reporter, task, 2 + n, 1 + n, START + (n + 1) * 10000, START + 1000 * MS - (n + 1) * 10000)


def captured_by_thousands(reporter, task):
    top(reporter, task)
    call(reporter, task, 2, 1, START + 1, START + MS, request=77)
    for n in range(44999):
        call(reporter, task, 3 + n, 1, START + 2 + n, START + MS, request=77, embed=False)


def two_roots(reporter, task):
    top(reporter, task)
    top(reporter, task, 2)
    call(reporter, task, 3, 1, START + 1000, START + MS)


def circle(reporter, task):
    for n in range(3):
        call(reporter, task, 1 + n, 1 + (n + 1) % 3, START + n, START + MS)


def a_million(reporter, task):
    top(reporter, task)
    pattern = report(CAPTURE, task, 1, 1, START, START + MS, name=1)
    before, after = pattern[:43], pattern[69:]
    for n in range(10**6):
        moment = (START + n).to_bytes(8, "big")
        reporter.add_bytes(before + (10**7 + n).to_bytes(8, "big") + b"\xcf" + (2 + n).to_bytes(8, "big") + b"\xcf"
                           + moment + after)


@pytest.fixture(name="shown")
def _shown(stage, request):
    """A stage whose controller was told of one shape, and the id of its task."""
    stage.controller()
    task = os.urandom(16)
    with Reporter(stage, NAMES) as reporter:
        request.param(reporter, task)
    processes.wait_until(lambda: stage.json("tasks", "--each", timeout=60), 60, "the task", 0.3)
    return stage, task.hex()


def settled(stage, task):
    """The execution when nothing more is added to it."""
    last = []

    def same():
        one = stage.json("show", task, timeout=60)
        last.append((len(one[0]["subtasks"]), one[0].get("truncated")))
        return len(last) > 1 and last[-1] == last[-2] and one

    return processes.wait_until(same, 60, "an end", 1)[0]


def views(stage, task):
    """What people see; every verb must answer, and fit."""
    fall = stage.weft("show", task, timeout=60).stdout
    stage.weft("show", task, "--full", timeout=60)
    names = stage.weft("tasks", timeout=60).stdout
    stage.weft("tasks", "--csv", timeout=60)
    stage.weft("tasks", "--edges", timeout=60)
    narrow = stage.weft("show", task, timeout=60, env={"COLUMNS": "40", "LC_ALL": "C"}).stdout
    assert narrow.isascii() and max(map(len, narrow.splitlines())) <= 40, narrow
    return fall, names


def exports(stage, task):
    """Every subtask is in each file: a slice, a span, a row of the page."""
    out = stage.directory / "out"
    subtasks = len(stage.json("show", task, timeout=60)[0]["subtasks"])
    stage.weft("export", "--format", "perfetto", "-o", out, task, timeout=60)
    assert sum(each["cat"] == "subtask" for each in perfetto.slices(perfetto.load(out))) == subtasks
    stage.weft("export", "--format", "otlp", "-o", out, task, timeout=60)
    assert out.stat().st_size > 50 * subtasks  # ids and times alone
    stage.weft("report", "-o", out, "--limit", "1", task, timeout=60)
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', out.read_text(encoding="utf-8"), re.S).group(1))
    assert [len(tree["subtasks"]) for tree in data["trees"]] == [subtasks]


@pytest.mark.parametrize("shown", [wide], indirect=True, ids=["wide"])
def test_wide(shown):
    stage, task = shown
    execution = settled(stage, task)
    fall, names = views(stage, task)
    exports(stage, task)
    assert execution["complete"] and len(execution["subtasks"]) == 10001
    assert {each["parent"] for each in execution["subtasks"]} == {None, f"{1:016x}"}
    assert execution["hops"]["proven"] == 10000
    assert "9,998" in fall and "GET /top" in names


@pytest.mark.parametrize("shown", [deep], indirect=True, ids=["deep"])
def test_deep(shown):
    stage, task = shown
    execution = settled(stage, task)
    views(stage, task)
    exports(stage, task)
    assert execution["complete"] and len(execution["critical_path"]) == 10001
    parents = {each["id"]: each["parent"] for each in execution["subtasks"]}
    assert all(parents[f"{n:016x}"] == f"{n - 1:016x}" for n in range(2, 10002))


@pytest.mark.parametrize("shown", [captured_by_thousands], indirect=True, ids=["captured_by_thousands"])
def test_captured_by_thousands(shown):
    stage, task = shown
    execution = settled(stage, task)
    fall, _ = views(stage, task)
    exports(stage, task)
    assert len(execution["subtasks"]) == KEPT and not execution["complete"]
    assert f"{45001 - KEPT:,} subtasks left out" in fall
    below = [each for each in execution["subtasks"] if each["parent"]]
    assert {each["parent"] for each in below} == {f"{1:016x}"}
    assert all(1 <= len(each["links"]) <= 8 for each in below)
    assert {link["kind"] for each in below for link in each["links"]} == {"same_request"}


@pytest.mark.parametrize("shown", [two_roots], indirect=True, ids=["two_roots"])
def test_two_roots(shown):
    stage, task = shown
    execution = settled(stage, task)
    fall, _ = views(stage, task)
    exports(stage, task)
    assert [each["parent"] for each in execution["subtasks"]].count(None) == 2
    assert not execution["complete"] and "second root" in fall


@pytest.mark.parametrize("shown", [circle], indirect=True, ids=["circle"])
def test_circle(shown):
    stage, task = shown
    execution = settled(stage, task)
    fall, _ = views(stage, task)
    exports(stage, task)
    assert [each["parent"] for each in execution["subtasks"]].count(None) == 1
    assert len(execution["subtasks"]) == 3 and not execution["complete"] and "incomplete" in fall


@pytest.mark.parametrize("shown", [a_million], indirect=True, ids=["a_million"])
def test_a_million(shown):
    stage, task = shown
    execution = settled(stage, task)
    fall, _ = views(stage, task)
    exports(stage, task)
    assert len(execution["subtasks"]) == KEPT and not execution["complete"]
    assert f"{10**6 + 1 - KEPT:,} subtasks left out" in fall

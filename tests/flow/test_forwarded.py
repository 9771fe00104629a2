# SPDX-License-Identifier: Apache-2.0
"""Two gateways in a row pass every header field on as it came. Where weft cannot put an id of its own
into what they forward, one id names several requests: nobody is his own caller, and none is missing."""
import collections
import random

import processes
import pytest
from fixtures_chain import executions, instruct
from fixtures_peer import RecordingPeer
from fixtures_relay import field_lines, get

GATEWAY = processes.ROOT / "tests" / "flow" / "programs" / "gateway.py"
PARENT = "00f067aa0ba902b7"


class Row:
    """client -> first -> second -> peer; the peer is not under weft."""

    def __init__(self, stage, peer):
        self.stage, self.peer = stage, peer
        self.port = self.start("first", self.start("second", peer.port))
        stage.wait_instances(2)

    def start(self, name, towards):
        port = processes.free_port(self.stage.rng)
        self.stage.start([processes.BUILD / "weft", "run", "--service", name, "--", processes.PYTHON, GATEWAY, port, towards],
                         env=self.stage.env())
        processes.wait_until(lambda: processes.listens(port), 20, f"{name} listening")
        return port

    def ask(self, path, *lines):
        """The traceparents that the peer received."""
        get(self.port, path, *lines)
        heads = [head for head in self.peer.heads if head.startswith(f"GET {path} ".encode())]
        return [field_lines(head, ours=False)["traceparent"][0] for head in heads]

    def execution(self, task, count):
        def whole(found):
            return any(e["task"] == task and len(e["subtasks"]) >= count for e in found)

        one, = [e for e in executions(self.stage, whole, 15) if e["task"] == task]
        assert len(one["subtasks"]) == count, one
        return one


@pytest.fixture(scope="module")
def row():
    with processes.Stage(random.Random(processes.draw_seed())) as stage, RecordingPeer() as peer:
        stage.controller()
        yield Row(stage, peer)


def shape(execution):
    """How many there are of each (service, hop, service of the caller); a leaf's is "peer"."""
    by_id = {s["id"]: s for s in execution["subtasks"]}
    assert len(by_id) == len(execution["subtasks"]), "ids are unique"

    def service(subtask):
        return subtask and ("peer" if subtask["hop"] == "embed_only" else subtask["service"])

    return collections.Counter((service(s), s["hop"], service(by_id.get(s["parent"]))) for s in execution["subtasks"])


CASES = {"control": ("/control", (), False), "halves": ("/halves", (), True), "address": ("/address", ("--embed-to", "10.0.0.0/8"), True)}


@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice"])
@pytest.mark.parametrize("case", CASES)
def test_a_caller_outside(row, case, twice):
    path, options, kept = CASES[case]
    path += "/twice" if twice else ""
    legs = 2 if twice else 1
    task = f"{list(CASES).index(case) * 2 + twice + 1:032x}"
    numbers = instruct(row.stage, "--on", "*", *options)
    try:
        received = row.ask(path, f"traceparent: 00-{task}-{PARENT}-01")
        assert [(own[3:35], own[36:52] == PARENT) for own in received] == [(task, kept)] * legs ** 2
        found = row.execution(task, 1 + legs + legs ** 2)
    finally:
        row.stage.weft("stop", *numbers)
    assert shape(found) == {("first", "capture_only", None): 1, ("second", "proven", "first"): legs,
                            ("peer", "embed_only", "second"): legs ** 2}
    assert found["complete"] and found["kind"] == "task"
    assert {s["request"] == PARENT for s in found["subtasks"][1:]} == {kept}


def test_a_caller_under_weft(row):
    """The first gateway makes the id and the second one keeps it: its own request is not missing."""
    numbers = instruct(row.stage, "--on", "*")
    try:
        own, = row.ask("/under/halves")
        found = row.execution(own[3:35], 3)
    finally:
        row.stage.weft("stop", *numbers)
    assert shape(found) == {("first", "root", None): 1, ("second", "proven", "first"): 1, ("peer", "embed_only", "second"): 1}
    assert {s["request"] for s in found["subtasks"][1:]} == {own[36:52]}

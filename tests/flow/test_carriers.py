# SPDX-License-Identifier: Apache-2.0
"""What a request of the application carries already decides what weft adds: through a gateway that
passes every header field on as it came."""
import random
import re

import processes
import pytest
from fixtures_chain import instruct
from fixtures_peer import RecordingPeer
from fixtures_relay import field_lines, get
from subscriber import BARE, EMBED
from tap import tapped

GATEWAY = processes.ROOT / "tests" / "flow" / "programs" / "gateway.py"
TASK, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
OWN = f"00-{TASK}-{PARENT}-00"
ADOPTED, PRIVATE = 0x04, 0x10
CONTEXT_REASON = 13


class Gateway:
    def __init__(self, stage, peer, tap):
        self.stage, self.peer, self.tap = stage, peer, tap
        self.port = processes.free_port(stage.rng)
        command = [processes.BUILD / "weft", "run", "--service", "gateway", "--", processes.PYTHON, GATEWAY, self.port, peer.port]
        self.process = stage.start(command, env=stage.env())
        processes.wait_until(lambda: processes.listens(self.port), 20, "the gateway listening")
        stage.wait_instances(1)

    def pass_on(self, path, *lines):
        """The fields of the request that the peer received, and the report of it."""
        get(self.port, path, *lines)
        head, = [head for head in self.peer.heads if head.startswith(f"GET {path} ".encode())]

        def reported():
            return [r for r in self.tap.reports() if r["kind"] in (EMBED, BARE) and r["name"] == f"GET {path}"]

        return field_lines(head, ours=False), processes.wait_until(reported, 10, "the report")[0]


@pytest.fixture(scope="module")
def gateway():
    with processes.Stage(random.Random(processes.draw_seed())) as stage, RecordingPeer() as peer:
        stage.controller()
        with tapped(stage) as tap:
            found = Gateway(stage, peer, tap)
            found.numbers = instruct(stage, "--on", "*")
            yield found


def test_nothing_of_its_own(gateway):
    fields, report = gateway.pass_on("/plain")
    own, = fields["traceparent"]
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", own)
    assert (report["task"], f"{report['request']:016x}") == (own[3:35], own[36:52])


@pytest.mark.parametrize("name", ["traceparent", "TraceParent", "TRACEPARENT"])
def test_forwarded_as_it_came(gateway, name):
    """The parent id that this VM captured is written over by one of our own, in its place: same
    length, same spelling of the name, same flags, and no second field."""
    fields, report = gateway.pass_on(f"/forwarded/{name}", f"{name}: {OWN}", "tracestate: foo=1")
    own, = fields[name.lower()]
    assert re.fullmatch(rf"00-{TASK}-[0-9a-f]{{16}}-00", own) and PARENT not in own, "flags are left as they are"
    assert fields["tracestate"] == ["foo=1"] and "weft-task" not in fields
    assert report["task"] == TASK and f"{report['request']:016x}" == own[36:52]
    assert not report["flags"] & ADOPTED


@pytest.mark.parametrize("other", ["b3: 1", "B3: 80f198ee56343ba864fe8b2a57d3eff7-e457b5a2e4d86bd1-1", "X-B3-TraceId: 463ac35c9f6413ad",
                                   "x-datadog-trace-id: 1234", "sw8: 1-a-b-3", "uber-trace-id: 1:2:0:1"])
def test_beside_another_tracer(gateway, other):
    name = other.split(":")[0]
    fields, report = gateway.pass_on(f"/foreign/{name}", other)
    own, = fields["weft-task"]
    assert re.fullmatch(r"[0-9a-f]{32}-[0-9a-f]{16}", own) and "traceparent" not in fields
    assert fields[name.lower()] == [other.split(": ")[1]]
    assert report["flags"] & PRIVATE and report["task"] == own[:32]


@pytest.mark.parametrize("case, lines", [("short", (f"traceparent: 00-{TASK}-{PARENT}",)), ("nonsense", ("traceparent: nonsense",)),
                                         ("two", (f"traceparent: {OWN}",) * 2), ("version", (f"traceparent: ff{OWN[2:]}",))])
def test_invalid_ones_are_left_alone(gateway, case, lines):
    """Two would be as bad as a wrong one: the request goes as it is, and is counted."""
    fields, report = gateway.pass_on(f"/invalid/{case}", *lines)
    assert fields["traceparent"] == [line.split(": ")[1] for line in lines] and "weft-task" not in fields
    assert (report["kind"], report["reason"]) == (BARE, CONTEXT_REASON)


def test_always_the_private_one(gateway):
    gateway.stage.weft("stop", *gateway.numbers)
    number = instruct(gateway.stage, "--on", "*", "--carrier", "weft")
    try:
        fields, report = gateway.pass_on("/private")
        assert re.fullmatch(r"[0-9a-f]{32}-[0-9a-f]{16}", fields["weft-task"][0]) and "traceparent" not in fields
        assert report["flags"] & PRIVATE
        fields, report = gateway.pass_on("/private/beside", f"traceparent: {OWN}")
        assert fields["traceparent"] == [OWN] and len(fields["weft-task"]) == 1, "another tracer's is left to it"
    finally:
        gateway.stage.weft("stop", *number)
        gateway.numbers = instruct(gateway.stage, "--on", "*")

# SPDX-License-Identifier: Apache-2.0
"""Nothing of header fields, queries, user info or bodies leaves a VM with weft, but for the trace
context that goes on in its requests: every place that weft writes to is searched for what was
planted, and for what must be there, so that a search that finds nothing means something."""
import contextlib
import time

import processes
import pytest
from fixtures_chain import instruct
from fixtures_peer import RecordingPeer
from fixtures_probe import DATA, SPOOL, memory
from fixtures_relay import Relay, start_relay
from subscriber import Subscriber
from tap import tapped

TRACEPARENT = "traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
PLANTED = {
    "query": "canaryquery", "outgoing query": "canaryoutquery", "user info": "canaryuser", "header": "canaryheader",
    "cookie": "canarycookie", "authorization": "canaryauthorization", "name of a header": "x-canary-name",
    "tracestate": "canarystate", "body": "canarybody", "fragment": "canaryfragment",
}
IN_PATH, NUMBER = "canarypath", "778866554433"


@pytest.fixture(params=["cpython", "jvm-17"])
def relay(request, stage):
    with RecordingPeer() as peer:
        stage.controller()
        with Subscriber(stage.address) as subscriber, tapped(stage) as tap:
            found = Relay(start_relay(stage, request.param), peer)
            found.stage, found.tap, found.subscriber = stage, tap, subscriber
            yield found


def ask(relay, path):
    return relay.send(
        [TRACEPARENT, ("tracestate", f"k={PLANTED['tracestate']}"), ("x-secret", PLANTED["header"]), (PLANTED["name of a header"], "1"),
         ("Cookie", f"session={PLANTED['cookie']}"), ("Authorization", f"Bearer {PLANTED['authorization']}")],
        path=path, query=f"?token={PLANTED['outgoing query']}", arguments=[PLANTED["body"]])[0]


def written(relay):
    """{where: bytes} of all that weft has written."""
    places = {}
    for path in relay.stage.directory.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # the store's own files come and go
            if path.is_file() and path.suffix != ".class":
                places[str(path.relative_to(relay.stage.directory))] = path.read_bytes()
    places["report bus"] = b"".join(relay.tap.frames)
    places["instruction bus"] = repr(relay.subscriber.seen).encode()
    with memory(relay.app.pid) as mapped:
        places["memory"], places["spool"] = mapped[:], mapped[SPOOL:]
        places["rings"] = mapped[DATA:SPOOL]
    return places


def test_what_is_planted_is_found_nowhere(relay):
    instruct(relay.stage, "--on", "*")
    ports = f"{relay.app.port}"
    paths = [f"/{IN_PATH}/{NUMBER}?token={PLANTED['query']}", f"/{IN_PATH}?a=b&token={PLANTED['query']}#{PLANTED['fragment']}",
             f"http://{PLANTED['user info']}:pw@127.0.0.1:{ports}/{IN_PATH}/{NUMBER}?token={PLANTED['query']}"]
    if relay.app.kind == "jvm-relay":
        paths[1] = paths[1].split("#")[0]  # its server refuses a fragment
    for _ in range(5):
        for path in paths:
            fields = ask(relay, path)
            assert fields["tracestate"] == [f"k={PLANTED['tracestate']}"], "that goes on, in the request and nowhere else"
            assert PLANTED["outgoing query"].encode() in relay.peer.heads[-1], "what was planted went through"
    processes.wait_until(lambda: len(relay.tap.reports()) >= 30, 20, "both copies of every request")
    processes.wait_until(lambda: relay.stage.json("tasks", "--each"), 10, "something in the store", 0.1)
    time.sleep(0.5)
    places = written(relay)
    for what, text in PLANTED.items():
        found = [where for where, data in places.items() if text.encode() in data.lower()]
        assert not found, f"{what} stands in {found}"
    # The search itself: a path is no secret, but its number is nobody's business behind the sidecar.
    for where in ("report bus", "rings", next(name for name in places if name.endswith(".weftj"))):
        assert IN_PATH.encode() in places[where], f"the path is not even in {where}"
    assert NUMBER.encode() in places["rings"]
    found = [where for where, data in places.items() if NUMBER.encode() in data and where not in ("memory", "rings")]
    assert not found, f"a number in a path stands in {found}"

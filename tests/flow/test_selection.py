# SPDX-License-Identifier: Apache-2.0
"""Which requests become tasks, and to whom requests of a task say so: --match, --match-header,
--exclude, --sample, --max, --embed-to, on real VMs."""
import concurrent.futures
import contextlib
import random
import threading

import processes
import pytest
from fixtures_chain import chain, executions, instruct, path_through, send, settle
from fixtures_peer import RecordingPeer
from fixtures_relay import Relay, start_relay
from subscriber import BARE
from tap import tapped

TASK = "4bf92f3577b34da6a3ce929d0e0e4736"
GOOD = "traceparent", f"00-{TASK}-00f067aa0ba902b7-01"
ADDRESS_REASON = 7
RUNTIMES = ["cpython", "jvm-17"]


@pytest.fixture(scope="module", params=RUNTIMES)
def relay(request):
    with processes.Stage(random.Random(processes.draw_seed())) as stage, RecordingPeer() as peer:
        stage.controller()
        with tapped(stage) as tap:
            found = Relay(start_relay(stage, request.param), peer)
            found.stage, found.tap = stage, tap
            yield found


@contextlib.contextmanager
def told(relay, *options):
    numbers = instruct(relay.stage, "--on", "*", *options)
    try:
        yield numbers
    finally:
        relay.stage.weft("stop", *numbers)


def marked(relay, *headers, path="/relay"):
    """Whether what the relay sends on carries a task id."""
    return "traceparent" in relay.send(headers, path=path)[0]


# ---- to whom -------------------------------------------------------------------

@pytest.mark.parametrize("options, expected", [
    ((), True), (("--embed-to", "private"), True), (("--embed-to", "any"), True),
    (("--embed-to", "127.0.0.0/8"), True), (("--embed-to", "127.0.0.1"), True), (("--embed-to", "10.0.0.0/8,127.0.0.1/32"), True),
    (("--embed-to", "10.0.0.0/8", "--embed-to", "127.0.0.0/30"), True), (("--embed-to", "203.0.113.0/24,private"), True),
    (("--embed-to", "10.0.0.0/8,192.168.7.0/24,fd00::/8"), False), (("--embed-to", "127.0.0.2/31"), False),
    (("--embed-to", "::/0"), False),
], ids=str)
def test_embed_to(relay, options, expected):
    """Also on the JVM, whose sockets are of IPv6 and write v4 addresses as such."""
    with told(relay, *options):
        before = len([r for r in relay.tap.reports() if r["kind"] == BARE and r["reason"] == ADDRESS_REASON])
        assert marked(relay, GOOD) == expected

        def bares():
            return len([r for r in relay.tap.reports() if r["kind"] == BARE and r["reason"] == ADDRESS_REASON]) - before

        if not expected:
            processes.wait_until(lambda: bares() == 1, 10, "the request that carries nothing is told of")


def test_embed_to_what_is_no_network(relay):
    done = relay.stage.weft("instruct", "--on", "*", "--embed-to", "10.1.0.0/8", check=False)
    assert done.returncode == 2 and "10.1.0.0/8" in done.stderr and "behind the prefix" in done.stderr


# ---- which requests ------------------------------------------------------------

@pytest.mark.parametrize("pattern, matching, others", [
    ("POST /checkout", ["/checkout", "/checkout?n=1"], ["/checkout/2", "/check", "/"]),
    ("POST /orders/*", ["/orders/17", "/orders/"], ["/orders", "/orders/17/items"]),
    ("/a/**/z", ["/a/b/z", "/a/b/c/z", "/a//z"], ["/a/b/zz", "/b/z"]),
    ("GET /**", [], ["/checkout", "/"]),
], ids=lambda value: value if isinstance(value, str) else "")
def test_match(relay, pattern, matching, others):
    with told(relay, "--match", pattern):
        assert [path for path in matching + others if marked(relay, path=path)] == matching


def test_match_header(relay):
    with told(relay, "--match", "/relay", "--match-header", "X-Debug"):
        assert marked(relay, ("x-debug", "1")) and marked(relay, ("X-DEBUG", ""))
        assert not marked(relay) and not marked(relay, ("x-debugger", "1")) and not marked(relay, ("x-other", "x-debug"))
        assert not marked(relay, ("x-debug", "1"), path="/other"), "both must hold"
    with told(relay):
        assert marked(relay), "and without it everything does again"


MACHINES = ["/health", "/healthz", "/livez", "/live", "/readyz", "/ready", "/ping", "/status", "/metrics", "/health/db",
            "/actuator/health", "/actuator/health/readiness", "/actuator/prometheus"]


def test_health_checks_start_no_task(relay):
    with told(relay):
        assert not [path for path in MACHINES if marked(relay, path=path)]
        assert all(marked(relay, path=path) for path in ("/healthy", "/orders/status", "/"))
        assert marked(relay, GOOD, path="/health"), "what is part of a task stays one"
    with told(relay, "--match", "POST /health"):
        assert marked(relay, path="/health"), "asked for by name"
    with told(relay, "--exclude", "none"):
        assert marked(relay, path="/metrics")
    with told(relay, "--exclude", "/admin/**", "--exclude", "POST /internal"):
        assert not marked(relay, path="/admin/x/y") and not marked(relay, path="/internal") and not marked(relay, path="/ping")
        assert marked(relay, path="/relay")


def test_a_run_of_health_checks_only_says_so(relay):
    stopping = threading.Event()

    def check():
        while not stopping.wait(0.05):
            relay.send([], path="/health")

    asker = threading.Thread(target=check)
    asker.start()
    def said():
        # On a loaded machine the counts may come after the report: it does not wait for them.
        done = relay.stage.weft("profile", "--on", "*", "--for", "1500ms", check=False)
        return "requests that could have started one are excluded" in done.stderr and "--exclude none" in done.stderr

    try:
        processes.wait_until(said, 20, "the report that says why")
    finally:
        stopping.set()
        asker.join()


# ---- how many ------------------------------------------------------------------

def test_a_cap_is_exact_in_each_vm(relay):
    with told(relay, "--max", "7"), concurrent.futures.ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(lambda _: marked(relay), range(40))) == 7


@pytest.mark.parametrize("places", [("--on", "*"), ("--root", "service=front", "--embed", "*", "--capture", "*")], ids=["all", "front"])
def test_a_sample_is_whole_tasks(stage, places):
    """One in four, drawn at the root: what was drawn is complete through three VMs, what was not is
    nowhere, not even as an orphan; also where others, told to start tasks, too, draw for themselves."""
    names = "front", "orders", "pricing"
    with chain(stage, ("http", "jvm", "http"), names) as running:
        instruct(stage, *places, "--sample", "1/4")
        numbers = [send(running.apps["front"], path_through(*names, work="s0")) for _ in range(60)]
        drawn = [n for n in numbers if running.logged("orders", n)[0]["traceparent"]]
        assert 1 < len(drawn) < 36, "about one in four"
        if places[0] == "--root":
            assert drawn == [n for n in numbers if running.logged("pricing", n)[0]["traceparent"]]
        found = executions(stage, lambda all_: len([e for e in all_ if e["hops"]["proven"] == 2]) == len(drawn))
        settle()
        assert {e["task"] for e in found} == {running.logged("orders", n)[0]["traceparent"][3:35] for n in drawn}
        assert {e["kind"] for e in executions(stage, lambda all_: True)} == {"task"}

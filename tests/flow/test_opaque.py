# SPDX-License-Identifier: Apache-2.0
"""Opaque calls: what a request asks of servers that weft does not speak to, compared with how
often the application asked, and with what crossed a proxy that knows nothing of weft."""
import contextlib
import http.client
import json
import os
import random
import re
import signal
import subprocess

import processes
import pytest
from fixtures_chain import executions, instruct
from fixtures_servers import Closing, Counting, Full, Lines, Postgres, Resetting, Silent, TlsEcho, start_redis
from subscriber import OPAQUE
from tap import tapped

PROGRAMS = processes.ROOT / "tests" / "flow" / "programs"
JDBC = "/usr/share/java/postgresql.jar"


@pytest.fixture(scope="module")
def postgres():
    with Postgres(random.Random(processes.draw_seed())) as server:
        yield server


class Service:
    """A service under weft whose requests ask others."""

    def __init__(self, stage, port):
        self.stage, self.port, self.asked = stage, port, 0

    def get(self, what, **fields):
        """Sends one request; the body of its answer."""
        query = "&".join(f"{key}={value}" for key, value in fields.items())
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", f"/{what}?{query}")
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        assert answer.status == 200, body
        self.asked += 1
        return body

    def ask(self, what, **fields):
        """Sends one request; its execution, complete."""
        self.get(what, **fields)
        found = executions(self.stage, lambda all_: sum(e["complete"] for e in all_) == self.asked, seconds=15)
        execution = max(found, key=lambda e: e["start_ns"])
        assert execution["name"] == f"GET /{what}"
        return execution


def start(stage, command, *more, standing=True):
    port = processes.free_port(stage.rng)
    process = stage.start([stage.build / "weft", "run", "--service", "front", "--", *command, str(port), *more],
                          stdin=subprocess.DEVNULL, env=stage.env(), cwd="/")
    processes.wait_until(lambda: processes.listens(port) or process.poll() is not None, 30, "the service")
    stage.wait_instances(1)
    if standing:
        instruct(stage, "--on", "*", "--root", "service=front")
    return Service(stage, port)


@pytest.fixture
def service(stage, controller):
    return start(stage, [processes.PYTHON, PROGRAMS / "asker.py"])


def leaves(execution, name):
    found = [s for s in execution["subtasks"] if s["hop"] == "opaque" and s["name"] == name]
    top = execution["subtasks"][0]
    assert execution["hops"]["opaque"] == len(execution["subtasks"]) - 1
    for leaf in found:
        assert leaf["parent"] == top["id"] and leaf["request"] is None and leaf["vm"] is None
        assert top["start_ns"] <= leaf["start_ns"]
        assert leaf["start_ns"] + leaf["duration_ns"] <= top["start_ns"] + top["duration_ns"]
        assert leaf["self_ns"] <= leaf["duration_ns"] + 1000, "what is waited for lies between first and last"
    assert top["self_ns"] == top["duration_ns"] - sum(s["self_ns"] for s in execution["subtasks"][1:])
    return found


def leaf_of(execution, name):
    found, = leaves(execution, name)
    return found


def test_postgresql_through_psycopg2(service, postgres):
    """A connection for each request, then one that is kept: calls and bytes are those of the
    proxy, and the queries are what the application says."""
    with Counting(postgres.port) as proxy:
        leaf = leaf_of(service.ask("postgresql", n=5, port=proxy.port), "postgresql")
        turns, out, back = proxy.counts()
        assert leaf["service"] == f"127.0.0.1:{proxy.port}" and leaf["error"] is None
        assert (leaf["calls"], leaf["bytes_in"]) == (turns, back)
        assert turns == 5 + 2, "five queries, the question for TLS and the start of the session"
        assert leaf["bytes_out"] == out, "its farewell, too"

        service.ask("postgresql", n=1, port=proxy.port, keep=1)
        before = proxy.counts()
        leaf = leaf_of(service.ask("postgresql", n=38, port=proxy.port, keep=1, size=20000), "postgresql")
        delta = tuple(b - a for a, b in zip(before, proxy.counts()))
        assert (leaf["calls"], leaf["bytes_out"], leaf["bytes_in"]) == delta
        assert leaf["calls"] == 38 and leaf["bytes_in"] > 38 * 20000


def test_pgjdbc(stage, controller, postgres):
    """The same through JDBC in a HotSpot; the connection was opened in another thread's request."""
    home = processes.java_home()
    if not os.path.exists(JDBC):
        raise processes.Missing("pgjdbc (libpostgresql-jdbc-java)")
    target = stage.directory / "classes"
    subprocess.run([processes.javac(home), "-d", target, PROGRAMS / "JdbcAsker.java"], check=True)
    with Counting(postgres.port) as proxy:
        url = f"jdbc:postgresql://127.0.0.1:{proxy.port}/postgres"
        service = start(stage, [home / "bin" / "java", "-Xmx256m", "-cp", f"{target}:{JDBC}", "JdbcAsker"], url)
        first = leaf_of(service.ask("ask", n=3), "postgresql")
        assert (first["calls"], first["bytes_out"], first["bytes_in"]) == proxy.counts()
        before = proxy.counts()
        assert service.get("ask", n=20) == str(sum(range(21)))
        found = executions(stage, lambda all_: sum(e["complete"] for e in all_) == 2)
        leaf = leaf_of(max(found, key=lambda e: e["start_ns"]), "postgresql")
        delta = tuple(b - a for a, b in zip(before, proxy.counts()))
        assert (leaf["calls"], leaf["bytes_out"], leaf["bytes_in"]) == delta
        assert leaf["calls"] == 20


def test_redis_over_tcp_and_unix(stage, service):
    port, path = start_redis(stage)
    with Counting(port) as proxy:
        leaf = leaf_of(service.ask("redis", n=4, port=proxy.port), "redis")
        assert (leaf["calls"], leaf["bytes_out"], leaf["bytes_in"]) == proxy.counts()
        assert leaf["calls"] == 8
    local = leaf_of(service.ask("redis", n=4, port=0, path=path), "redis")
    assert local["service"] == "unix socket"
    assert (local["calls"], local["bytes_out"], local["bytes_in"]) == \
        (leaf["calls"], leaf["bytes_out"], leaf["bytes_in"])


def test_several_peers_and_what_is_waited_for(stage, service):
    """Four answers that take 50 ms each are no time of the service's own."""
    with Lines(delay=0.05) as slow:
        execution = service.ask("lines", n=4, port=slow.port)
        leaf = leaf_of(execution, "tcp")
        assert leaf["calls"] == 4 and leaf["self_ns"] >= 200_000_000
        assert execution["subtasks"][0]["self_ns"] <= execution["duration_ns"] - 200_000_000
        assert [bytes(one) for one in slow.received] == [(b"\x01" * 10 + b"\n") * 4], "not a byte is another one"
        assert (leaf["bytes_out"], leaf["bytes_in"]) == (44, 16)
        shown = stage.weft("show", execution["task"]).stdout
        assert re.search(rf"tcp (127\.0\.0\.1:{slow.port} )?× 4 .*opaque", shown), shown


def test_tls(stage, service):
    with TlsEcho(stage.directory) as server, Counting(server.port) as proxy:
        leaf = leaf_of(service.ask("tls", n=6, port=proxy.port), "tls")
        assert leaf["calls"] >= 6 + 1 and leaf["bytes_in"] == proxy.counts()[2]
        assert bytes(server.received[0]) == b"ping" * 6


@pytest.mark.parametrize("what", ["refused", "refused_later"])
def test_connects_that_are_refused(service, what):
    port = processes.free_port(service.stage.rng)
    leaf = leaf_of(service.ask(what, n=3, port=port), "tcp")
    assert (leaf["error"], leaf["calls"], leaf["service"]) == ("refused", 3, f"127.0.0.1:{port}")


def test_connects_that_are_given_up(service):
    with Full() as full:
        leaf = leaf_of(service.ask("timeout", n=2, port=full.port), "tcp")
    assert (leaf["error"], leaf["calls"]) == ("timeout", 2)
    assert leaf["self_ns"] >= 2 * 280_000_000


def test_calls_that_are_reset(service):
    with Resetting() as peer:
        leaf = leaf_of(service.ask("reset", n=2, port=peer.port), "tcp")
        assert (leaf["error"], leaf["calls"], leaf["bytes_out"]) == ("reset", 2, 14)


def given_up(service, **fields):
    """One request that gives up: its execution, what it waited by its own clock, and what the peer received."""
    with Silent(fields["good"]) as peer:
        waited_ns = json.loads(service.get("impatient", n=2, port=peer.port, **fields))["waited_ns"]
        found = executions(service.stage, lambda all_: sum(e["complete"] for e in all_) == service.asked)
        return max(found, key=lambda e: e["start_ns"]), waited_ns, sum(len(one) for one in peer.received)


@pytest.mark.parametrize("how, good, leave", [("poll", 0, 0), ("poll", 0, 1), ("rcvtimeo", 0, 0),
                                              ("rcvtimeo", 0, 1), ("tls", 0, 0), ("poll", 3, 0), ("rcvtimeo", 3, 1)])
def test_calls_that_are_given_up(service, how, good, leave):
    """A peer falls silent. What the application waited by its own clock is no time of its own, but for what it
    does around its wait, whether it closes the connection or leaves it; what had been answered before stays
    another sum. Who shares the machine comes between two clocks: the best of up to three requests counts."""
    for _ in range(3):
        execution, waited_ns, sent = given_up(service, how=how, good=good, leave=leave)
        found = {leaf["error"]: leaf for leaf in leaves(execution, "tls" if how == "tls" else "tcp")}
        assert set(found) == ({"timeout", None} if good else {"timeout"})
        late, top = found["timeout"], execution["subtasks"][0]
        assert (late["calls"], late["bytes_in"]) == (2, 0)
        assert 2 * 290_000_000 <= late["self_ns"] <= waited_ns
        assert top["self_ns"] <= top["duration_ns"] - late["self_ns"]
        if good:
            assert (found[None]["calls"], found[None]["bytes_in"]) == (2 * good, 2 * good * 4)
            assert (found[None]["bytes_out"], late["bytes_out"]) == (2 * good * 7, 2 * 7)
        assert sum(leaf["bytes_out"] for leaf in found.values()) == sent
        print(f"waited {waited_ns / 1e6:.1f} ms, told {late['self_ns'] / 1e6:.1f} ms")
        if waited_ns - late["self_ns"] < 200_000_000:
            return
    pytest.fail("it waited longer than is told")


def test_calls_that_the_peer_closes(service):
    with Closing() as peer:
        leaf = leaf_of(service.ask("closed", n=2, port=peer.port), "tcp")
    assert (leaf["error"], leaf["calls"], leaf["bytes_out"]) == ("closed", 2, 14)


def test_calls_that_nobody_waits_for(service):
    with Silent() as peer:
        leaf = leaf_of(service.ask("unread", n=4, port=peer.port), "tcp")
    assert (leaf["error"], leaf["calls"], leaf["bytes_out"], leaf["self_ns"]) == (None, 4, 28, 0)


def test_names_are_counted_and_stay(stage):
    """Two lookups a turn, the third is none; nothing of the name is in what the VM sends."""
    stage.controller()
    with tapped(stage) as tap:
        service = start(stage, [processes.PYTHON, PROGRAMS / "asker.py"])
        leaf = leaf_of(service.ask("names", n=3), "dns")
        assert (leaf["calls"], leaf["service"], leaf["error"]) == (6, "", None)
        report, = [r for r in tap.reports() if r["kind"] == OPAQUE]
        assert report["peer"] is None and report["name"] == "dns" and report["calls"] == 6
        assert not any(b"localhost" in frame for frame in tap.frames)


def test_a_connection_from_before_the_instruction(stage, controller, postgres):
    """A pool outlives instructions: its calls are told from the first query on."""
    service = start(stage, [processes.PYTHON, PROGRAMS / "asker.py"], standing=False)
    with Counting(postgres.port, processes.free_port(stage.rng)) as proxy:
        service.get("postgresql", n=3, port=proxy.port, keep=1)
        service.asked = 0
        instruct(stage, "--on", "*", "--root", "service=front")
        for n in (2, 9):
            before = proxy.counts()
            leaf = leaf_of(service.ask("postgresql", n=n, port=proxy.port, keep=1), "postgresql")
            delta = tuple(b - a for a, b in zip(before, proxy.counts()))
            assert (leaf["calls"], leaf["bytes_out"], leaf["bytes_in"]) == delta
            assert leaf["calls"] == n


WIDE = {"COLUMNS": "120"}  # nothing is cut


def test_share_of_the_traffic(stage, controller, postgres):
    """What is not understood is the database's, byte for byte; `profile` and `ls` say so."""
    service = start(stage, [processes.PYTHON, PROGRAMS / "asker.py"], standing=False)
    with Counting(postgres.port) as proxy:
        profile = stage.start_weft("profile", stage.json("ls")[0]["pid"], "--for", "60s", env=WIDE)
        processes.wait_until(lambda: "root" in stage.json("ls")[0]["active"], 10, "the window", 0.1)
        for _ in range(3):
            service.get("postgresql", n=50, port=proxy.port, size=5000)
        profile.send_signal(signal.SIGINT)
        out, said = profile.communicate(timeout=150)
        assert re.search(r"visible traffic front \d+(\.\d+)? %\s+\(rest: postgresql\)", out), (out, said)
        assert re.search(r"└ postgresql 127\.0\.0\.1:\d+ × 52 \(opaque\)", out), out

        _, out_bytes, back_bytes = proxy.counts()

        def told():
            one, = stage.json("ls")
            return one["active"], one["rest"]
        processes.wait_equal(told, ([], {"postgresql": out_bytes + back_bytes}), 15, "the idle instance")
        one, = stage.json("ls")
        assert one["bytes_total"] == one["bytes_spoken"] + one["rest"]["postgresql"]
        assert re.search(r"LOST  REST\n.* postgresql", stage.weft("ls", env=WIDE).stdout)


def test_json_names_are_those_of_the_schema(service):
    with Lines() as peer:
        leaf = leaf_of(service.ask("lines", n=1, port=peer.port), "tcp")
    schema = json.loads((processes.ROOT / "common" / "execution.schema.json").read_text())
    known = schema["$defs"]["subtask"]["properties"]
    assert set(leaf) <= set(known) and set(schema["$defs"]["subtask"]["required"]) <= set(leaf)


def test_outside_of_any_request_nothing_is_told(stage, controller, postgres):
    """The same service without `root`: its requests are nobody's, and so are its calls."""
    service = start(stage, [processes.PYTHON, PROGRAMS / "asker.py"], standing=False)
    instruct(stage, "--embed", "service=front", "--capture", "service=front")
    with Counting(postgres.port) as proxy:
        service.get("postgresql", n=2, port=proxy.port)
        with contextlib.suppress(processes.Failed):
            processes.within(lambda: stage.json("tasks", "--each"), 1.5, "executions", 0.1)
            pytest.fail("something was told of a request that nobody asked for")

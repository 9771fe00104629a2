# SPDX-License-Identifier: Apache-2.0
"""Where it cannot be known which request a call belongs to, weft says unknown: never another
request's task."""
import re
import socket
import subprocess
import threading
import time

import processes
import pytest
from fixtures_chain import instruct
from fixtures_peer import TRACEPARENT, RecordingPeer
from fixtures_probe import ACTIVE, state
from scenario import plan

PROGRAMS = processes.ROOT / "tests" / "flow" / "programs"
ROUNDS = 40


def request(number, path):
    return (f"GET {path} HTTP/1.1\r\nHost: x\r\ntraceparent: 00-{number:032x}-{number + 7:016x}-01\r\n\r\n").encode()


def converse(port, numbers, target):
    """Sends the requests in one write and takes all the answers."""
    with socket.create_connection(("127.0.0.1", port), timeout=120) as client:
        client.sendall(b"".join(request(number, target(number)) for number in numbers))
        got = b""
        while got.count(b"HTTP/1.1 200 ") < len(numbers):
            data = client.recv(65536)
            assert data, "the connection stays"
            got += data


def calls(peer):
    """(number of the request for which a call was made, task id that it carried) of each call."""
    for head in list(peer.heads):
        number = int(re.search(rb"[?&]n=(\d+)", head)[1])
        for task, _ in TRACEPARENT.findall(head):
            yield number, int(task, 16)


def assert_never_anothers(peer):
    marked = list(calls(peer))
    assert marked, "calls were marked at all"
    wrong = [(number, task) for number, task in marked if task != number and task < 1 << 64]
    assert not wrong, f"{len(wrong)} of {len(marked)} calls carry another request's task: {wrong[:5]}"
    return marked


def run_clients(port, target, size, parallel=6):
    counter = iter(range(1, 100_000))
    failures = []

    def client():
        try:
            for _ in range(ROUNDS):
                converse(port, [next(counter) for _ in range(size)], target)
        except Exception as error:  # the test shall say it, whatever it is
            failures.append(error)

    threads = [threading.Thread(target=client) for _ in range(parallel)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def embed(stage, pid):
    stage.wait_instances(1)
    instruct(stage, "--embed", f"pid={pid}", "--capture", f"pid={pid}")
    processes.wait_until(lambda: state(pid)[0] == ACTIVE, 5, "active probe")


@pytest.mark.parametrize("version", [17, 25])
def test_pipelined_requests(stage, controller, jdk, version):
    """One read brings several requests, and whichever thread is free takes up the next."""
    jdk(version)
    with RecordingPeer() as peer:
        app = stage.app("jvm", "orders", jdk=version, peers={"peer": f"http://127.0.0.1:{peer.port}"})
        stage.weft("attach", app.pid)
        embed(stage, app.pid)
        node = plan.parse("orders~G~/orders~s1~200~0~10(peer~G~/x~s0~200~0~10)")
        run_clients(app.port, lambda number: node.path + "?" + node.query(number, "0"), 3)
        assert_never_anothers(peer)


@pytest.mark.parametrize("version", [17, 25])
def test_event_loop_that_calls(stage, controller, jdk, version):
    """One thread reads, waits and calls for all the requests in turn."""
    home = jdk(version)
    target = stage.directory / "classes"
    subprocess.run([home / "bin" / "javac", "-d", target, PROGRAMS / "EventLoop.java"], check=True)
    port = processes.free_port(stage.rng)
    with RecordingPeer() as peer:
        loop = stage.start([home / "bin" / "java", "-cp", target, "EventLoop", port, peer.port], env=stage.env())
        processes.wait_until(lambda: processes.listens(port), 20, "the loop listening")
        stage.weft("attach", loop.pid)
        embed(stage, loop.pid)
        time.sleep(0.2)
        run_clients(port, lambda number: f"/go?n={number}", 1)
        assert_never_anothers(peer)


def test_dispatcher_that_calls_for_itself(stage, controller):
    """A thread that accepts, reads heads and hands them on: what it calls is on nobody's behalf."""
    port = processes.free_port(stage.rng)
    with RecordingPeer() as peer:
        service = stage.start([processes.PYTHON, PROGRAMS / "dispatcher.py", port, peer.port], env=stage.env())
        processes.wait_until(lambda: processes.listens(port), 10, "the dispatcher listening")
        stage.weft("attach", service.pid)
        embed(stage, service.pid)
        clients = [threading.Thread(target=converse, args=(port, [number], lambda n: f"/go?n={n}"))
                   for number in range(1, 7)]
        for client in clients:
            client.start()
            time.sleep(0.15)  # the one before is still being worked on
        for client in clients:
            client.join()
        assert len(assert_never_anothers(peer)) >= len(clients)

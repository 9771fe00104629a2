# SPDX-License-Identifier: Apache-2.0
"""No body byte ever changes: what a peer receives from a client under active embed is, to
the byte, what it receives without weft, plus one traceparent line in the head of each
request. The peer writes down everything; the clients are ordinary programs."""
import subprocess

import processes
import pytest
from fixtures_chain import instruct
from fixtures_peer import RecordingPeer, without_task
from fixtures_wire import PROGRAMS, embed, run_client


def converse(stage, command, peer, before_go=None):
    """Runs a sender; its cases and the peer's connections."""
    peer.connections = []
    cases = run_client(stage, command, before_go)
    processes.wait_until(lambda: all(connection.ended for connection in peer.connections), 10, "all that was sent")
    return cases, peer.connections


def compare(plain, marked):
    """Connection by connection, in the order of the cases."""
    assert len(plain) == len(marked)
    ids = []
    for before, after in zip(plain, marked):
        bare, pairs = without_task(after)
        assert bare == bytes(before.raw), f"bytes differ after {bytes(before.raw[:60])!r}"
        assert [body for _, body in before.requests] == [body for _, body in after.requests]
        ids += pairs
    assert len({request for _, request in ids}) == len(ids), "each request has an id of its own"
    return ids


def active(stage):
    """Waits for the one instance and tells it to embed."""
    def tell(process):
        stage.wait_instances(1)
        instruct(stage, "--embed", f"pid={process.pid}")
    return tell


def test_cpython_sends_the_same_bytes(stage, controller):
    with RecordingPeer() as peer:
        command = [processes.PYTHON, PROGRAMS / "sender.py", peer.port]
        cases, plain = converse(stage, command, peer)
        run = [processes.BUILD / "weft", "run", "--service", "sender", "--"]
        marked_cases, marked = converse(stage, run + command, peer, active(stage))
        assert cases == marked_cases and len(cases) == 11
        ids = compare(plain, marked)
        assert len(ids) == sum(len(c.requests) for c in plain) == 100
        assert marked[-1].raw.startswith(b"PING 0 GET / HTTP/1.1"), "what is no HTTP goes through"


@pytest.mark.parametrize("version", [17, 25])
def test_jvm_sends_the_same_bytes(stage, controller, jdk, version):
    home = jdk(version)
    target = stage.directory / "sender"
    subprocess.run([processes.javac(home), "-d", target, PROGRAMS / "Sender.java"], check=True)
    with RecordingPeer() as peer:
        command = [home / "bin" / "java", "-cp", target, "Sender", peer.port]
        cases, plain = converse(stage, command, peer)

        def attach(process):
            stage.weft("attach", process.pid)
            active(stage)(process)

        marked_cases, marked = converse(stage, command, peer, attach)
        assert cases == marked_cases and len(cases) == 4
        assert len(compare(plain, marked)) == 42


def test_an_idle_probe_changes_nothing(stage, controller):
    """Under weft, told nothing: the very same bytes."""
    with RecordingPeer() as peer:
        command = [processes.PYTHON, PROGRAMS / "sender.py", peer.port]
        _, plain = converse(stage, command, peer)
        run = [processes.BUILD / "weft", "run", "--service", "sender", "--"]
        _, idle = converse(stage, run + command, peer, lambda _: stage.wait_instances(1))
        assert [bytes(c.raw) for c in idle] == [bytes(c.raw) for c in plain]


@pytest.mark.parametrize("under_weft", [False, True])
def test_a_handler_on_a_small_stack(stage, controller, tmp_path, under_weft):
    """What the hooks need of the stack is little where nothing can be inserted: a handler with 8 KiB of its own
    writes, and the memory below stays as it was."""
    program = tmp_path / "small_stack"
    subprocess.run(["gcc", "-O2", "-o", program, PROGRAMS / "small_stack.c"], check=True)
    run = [processes.BUILD / "weft", "run", "--service", "small", "--"] if under_weft else []
    said = run_client(stage, run + [program], (lambda process: embed(stage, process)) if under_weft else None)
    assert said == ["40 writes, 0 bytes spoilt"]

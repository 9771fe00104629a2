# SPDX-License-Identifier: Apache-2.0
"""Strangers at the controller's sockets while a VM reports: garbage, whoever connects and says
nothing, frames too large, batches that were there already. The account stays exact, and the
controller answers its clients meanwhile."""
import contextlib
import resource
import socket
import sys
import time

import processes
import pytest
import zmq
from test_faults import build  # noqa: F401  pylint: disable=unused-import

sys.path.insert(0, str(processes.ROOT / "tests" / "fault"))
import harness  # noqa: E402
import journal  # noqa: E402

CONNECTIONS = 2000
FRAME_MAX = 131072
ANSWER_SECONDS = 3


@pytest.fixture
def field(rng, build):  # noqa: F811
    port = processes.free_port(rng)
    stage = harness.Stage(rng, build, address="tcp://127.0.0.1:%d" % port)
    value = harness.Harness(stage, rng, vms=1)
    value.port = port
    yield value
    value.close()


def assert_unaffected(field):
    taken = []
    while len(taken) < 3 and (not taken or taken[-1] >= ANSWER_SECONDS):  # what else the machine does may be in the way
        began = time.monotonic()
        assert field.ask("ls").returncode == 0
        taken.append(time.monotonic() - began)
    print("answered in", taken)
    assert taken[-1] < ANSWER_SECONDS, "strangers keep the controller from its clients"
    assert field.controller.poll() is None
    assert field.audit() == []


def push(field, frames):
    with zmq.Context() as context, context.socket(zmq.PUSH) as sender:
        sender.setsockopt(zmq.LINGER, 30_000)
        sender.connect("tcp://127.0.0.1:%d" % (field.port + 2))
        for frame in frames:
            sender.send(frame)


def test_connections_that_say_nothing_or_nonsense(field, rng):
    """Half of them keep a greeting unfinished, as a slow loris does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(CONNECTIONS + 200, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    held = []
    try:
        for n in range(wanted - 200):
            stranger = socket.socket()
            stranger.settimeout(0.02)
            held.append(stranger)
            with contextlib.suppress(OSError):
                stranger.connect(("127.0.0.1", field.port + n % 3))
                stranger.send(b"\xff" if n % 2 else rng.randbytes(64))
        time.sleep(1)
        assert_unaffected(field)
    finally:
        for stranger in held:
            stranger.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_frames_too_large(field, rng):
    push(field, [rng.randbytes(FRAME_MAX + 1), b"\x94\x01\x00\x04" + bytes(FRAME_MAX - 4), rng.randbytes(FRAME_MAX)])
    assert_unaffected(field)


def test_batches_that_were_there_already(field):
    def kept():
        return [frame for path in sorted((field.place / "journal").glob("*.weftj")) for frame in journal.records(path)
                if frame[3] == journal.BATCH]
    frames = processes.wait_until(kept, 10, "batches in the journal", 0.5)
    push(field, frames + frames[::-1])
    assert_unaffected(field)

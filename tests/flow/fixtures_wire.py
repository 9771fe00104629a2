# SPDX-License-Identifier: Apache-2.0
"""Runs a client twice against the recording peer, without weft and under active embed."""
import subprocess

import processes
from fixtures_chain import instruct
from fixtures_probe import ACTIVE, state

PROGRAMS = processes.ROOT / "tests" / "flow" / "programs"


def run_client(stage, command, before_go=None):
    """Runs a client to its end; `before_go` is called with its process once it is ready.
    Returns the lines that it printed."""
    process = stage.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=stage.env())
    assert process.stdout.readline() == "ready\n", process.stderr.read()
    if before_go:
        before_go(process)
    out, err = process.communicate("go\n", timeout=300)
    assert process.returncode == 0, err
    return out.splitlines()


def converse(stage, command, peer, before_go=None):
    """What a client printed, and the recordings of its connections."""
    return run_client(stage, command, before_go), peer.taken()


def embed(stage, process):
    """Tells the one instance to embed and waits until its probe does."""
    stage.wait_instances(1)
    instruct(stage, "--embed", f"pid={process.pid}")
    processes.wait_until(lambda: state(process.pid)[0] == ACTIVE, 5, "active probe")


def twice(stage, peer, command, join=None):
    """(recordings without weft, recordings under weft); what the client received is the same.
    join: attaches to the running process; without it the second run is by `weft run`."""
    before, plain = converse(stage, command, peer)

    def active(process):
        if join:
            join(process)
        embed(stage, process)

    run = [] if join else [stage.build / "weft", "run", "--service", "client", "--"]
    after, marked = converse(stage, run + command, peer, active)
    assert after == before, "the client received the same"
    return plain, marked


__all__ = ["PROGRAMS", "converse", "embed", "run_client", "twice"]

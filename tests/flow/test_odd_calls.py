# SPDX-License-Identifier: Apache-2.0
"""Clients that use their sockets as few do, under active embed and without weft: the same bytes at the peer, but for
the trace fields, and the same results of each call."""
import subprocess

import pytest
import recorder
from fixtures_wire import PROGRAMS, twice
from processes import PYTHON

# How many heads are marked: all of those whose every byte was seen, on connections of which that is proven.
CASES = {
    "vectors": 4 + 8 + 1,  # parts with the empty ones between them: up to 64, more are never inserted into
    "peeked": 4,
    "thrown_away": 2,  # then bytes of the answer went unseen
    "stdio": 3,  # on the last connection
    "replaced": 2 + 1 + 1,
    "half_spliced": 1,
    "corked": 1 + 2 + 2,
    "closed_while_read": 4,
    "forked_writer": 10,
    "bad_calls": 2,
    "disconnected": 2,
}


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    library = tmp_path_factory.mktemp("calls") / "calls.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-o", library, PROGRAMS / "calls.c"], check=True)
    return library


@pytest.mark.parametrize("case", CASES)
def test_odd_calls(stage, controller, rng, calls, case):
    with recorder.Peer() as peer:
        plain, marked = twice(stage, peer, [PYTHON, PROGRAMS / "odd_calls.py", peer.port, calls, case])
        assert recorder.check(plain, marked, rng, bare=lambda head: None) == CASES[case]

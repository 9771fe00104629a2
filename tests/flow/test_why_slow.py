# SPDX-License-Identifier: Apache-2.0
"""A cause that is planted in one of thirty requests to real VMs is what `weft profile` says makes
them slow, and where none is planted it names none. `make stress` plants each with ten seeds."""
import contextlib
import random

import planted
import processes
import pytest

REQUESTS = 240


@contextlib.contextmanager
def made(kind):
    seed = processes.draw_seed()
    with processes.Stage(random.Random(seed)) as stage, planted.System(stage, seed, kind, REQUESTS) as system:
        yield system


@pytest.fixture(scope="module")
def plain():
    with made("plain") as system:
        yield system


def check(system, kind):
    """No cause, and half of the kind's. What the machine does beside may hide one once; no other one is ever
    named."""
    causes = random.Random(system.seed).sample(planted.CAUSES[kind], len(planted.CAUSES[kind]) // 2)
    for cause in [planted.UNIFORM] + causes:
        wrong = planted.look(system, cause)
        if wrong == planted.MISSED:
            wrong = planted.look(system, planted.UNIFORM) or planted.look(system, cause)
        assert not wrong, cause


def test_what_a_service_does(plain):
    check(plain, "plain")


@pytest.mark.parametrize("kind", ["pool", "hop"])
def test_what_is_before_a_service(kind):
    with made(kind) as system:
        check(system, kind)


def test_the_report_begins_with_it(plain):
    """For people: who, how many, how much more, where; and the table below."""
    run, out, _ = plain.profile("many")
    edge = run.edge()
    text = " ".join(out.split())
    assert "why slow The slowest " in text, out
    assert "%s → %s %s: " % (edge.caller, edge.callee, edge.callee_name) in text, out
    assert " calls instead of 1 (N+1)." in text, out
    assert out.index("why slow") < out.index("where the time goes")
    assert all(len(line) <= 100 for line in out.splitlines())

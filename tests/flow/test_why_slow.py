# SPDX-License-Identifier: Apache-2.0
"""A cause that is planted in one of thirty requests to real VMs is what `weft profile` says makes
them slow, and where none is planted it names none. `make stress` plants each with ten seeds."""
import planted
import pytest


@pytest.fixture
def system(stage, seed):
    return planted.System(stage, seed)


def test_planted_causes_are_named(system):
    """What the machine does beside may hide a cause once; no other one is ever named."""
    for cause in planted.CAUSES:
        for last in (False, True):
            run, why = system.why(cause)
            wrong = planted.judge(run, why)
            if wrong != planted.MISSED or last:
                break
        assert not wrong, "%s: %s, planted %s, told %s" % (cause, wrong, run.edge(), why)


def test_the_report_begins_with_it(system):
    """For people: who, how many, how much more, where; and the table below."""
    run, out, _ = system.profile("many")
    edge = run.edge()
    text = " ".join(out.split())
    assert "why slow The slowest " in text, out
    assert "%s → %s %s: " % (edge.caller, edge.callee, edge.callee_name) in text, out
    assert " calls instead of 1 (N+1)." in text, out
    assert out.index("why slow") < out.index("where the time goes")
    assert all(len(line) <= 100 for line in out.splitlines())

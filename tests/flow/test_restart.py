# SPDX-License-Identifier: Apache-2.0
"""A controller whose journal holds a part of what came in, killed and started again: `weft ls` still
adds up, to the event."""
import signal
import sys

import processes
import pytest
from processes import wait_until
from test_faults import build  # noqa: F401  pylint: disable=unused-import

sys.path.insert(0, str(processes.ROOT / "tests" / "fault"))
import harness  # noqa: E402
import journal  # noqa: E402
import moments  # noqa: E402

JOURNAL_MAX = 4 << 20
EVENTS = 80000  # three times what the journal holds


@pytest.fixture
def field(rng, build):  # noqa: F811
    value = harness.Harness(harness.Stage(rng, build), rng, vms=1, per_ms=10, options=("--journal-max", "4M"))
    yield value
    value.close()


def adds_up(field):
    _, written, refused = field.vms[0].counts()
    one, = field.stage.json("ls")
    return one["stored"] == written and sum(one["losses"].values()) == refused and \
        one["written"] == written + refused


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "ended"])
def test_the_account_outlives_the_journal(field, number):
    wait_until(lambda: field.vms[0].counts()[1] > EVENTS, 40, "enough events", 0.1)
    assert field.quiet() == []
    wait_until(lambda: adds_up(field), 15, "the account", 0.2)
    assert journal.size(field.place / "journal") <= JOURNAL_MAX
    field.controller.send_signal(number)
    field.controller.wait()
    field.recover()
    wait_until(lambda: adds_up(field), 15, "the account after a restart", 0.2)
    field.vms[0].rate(1)
    wait_until(lambda: field.vms[0].counts()[1] > EVENTS + 2000, 20, "more events", 0.1)
    assert field.quiet() == []
    wait_until(lambda: adds_up(field), 15, "the account of both lives", 0.2)


@pytest.mark.parametrize("point", moments.JOURNAL_POINTS)
def test_death_while_a_segment_is_used_again(field, rng, point):
    """The journal is full, and its oldest segment is no longer what it was and not yet the next one."""
    order = "%s:%d" % (point, rng.randrange(1, 3))
    wait_until(lambda: field.vms[0].counts()[1] > EVENTS, 40, "enough events", 0.1)
    assert moments.controller_dies_at(field, order) == order
    field.recover()
    assert field.deaths(order) == 1
    assert field.quiet() == []
    wait_until(lambda: adds_up(field), 15, "the account", 0.2)
    assert journal.size(field.place / "journal") <= JOURNAL_MAX

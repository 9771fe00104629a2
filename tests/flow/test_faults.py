# SPDX-License-Identifier: Apache-2.0
"""Twenty moments at which something is killed, stopped, cut or used up, under load. Whatever
it is: events attempted = stored + dropped by cause + tail, exactly; no lease is outlived; and
nothing grows. `make stress` runs 500 of them, WEFT_SEED repeats a run."""
import sys
import time

import processes
import pytest
from conftest import missing

sys.path.insert(0, str(processes.ROOT / "tests" / "fault"))
import harness  # noqa: E402
import session  # noqa: E402

BUILD = processes.ROOT / "build" / "faults"
MOMENTS, EACH, STOP_SECONDS = 20, 7, 3
DISK_MIB = 16


@pytest.fixture
def build():
    """With the fault points in: never the build that is shipped."""
    if not (BUILD / "tests" / "fault" / "event_writer").exists():
        missing("%s (make FAULTS=1 fault-tools)" % BUILD)
    return BUILD


def test_twenty_moments(seed, build):
    assert session.run(seed, MOMENTS, EACH, STOP_SECONDS, build) == []


def test_a_disk_that_the_reports_fill(rng, build):
    """What there is no room for stays in the spools, then is counted; with room again all of it is told."""
    field = harness.Harness(harness.Stage(rng, build), rng, vms=1, disk_mib=DISK_MIB, per_ms=0)
    try:
        if not field.mounted:
            missing("root: a small disk of one's own")
        vm, = field.vms
        vm.rate(30)
        processes.wait_until(lambda: sum(vm.memory.lost()) > 5000, 60, "events that fit nowhere", 0.1)
        assert vm.alive() and field.controller.poll() is None
        assert field.audit() == []
    finally:
        field.close()
    assert field.disk_mib > DISK_MIB


def test_the_audit_notices_a_lost_batch(rng, build):
    """The audit can fail: a journal without its last batch is no whole one."""
    field = harness.Harness(harness.Stage(rng, build), rng, vms=1)
    try:
        processes.wait_until(lambda: field.vms[0].counts()[1] > 500, 10, "some events")
        assert field.audit() == []
        time.sleep(2 * harness.TICK_NS / 1e9)
        field.collect()  # for good: what stands still is not read again
        del field.kept[max(field.kept)]
        found = field.audit()
    finally:
        field.close()
    assert any("are missing" in line for line in found), found

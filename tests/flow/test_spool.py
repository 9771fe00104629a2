# SPDX-License-Identifier: Apache-2.0
"""A writer that goes on while nobody takes its reports: its spool fills, then its rings, and what
does not fit is counted. Once a controller is back, everything adds up to the event."""
import os
import signal
import sys
import time

import processes
import pytest
from processes import wait_until
from test_faults import build  # noqa: F401  pylint: disable=unused-import

sys.path.insert(0, str(processes.ROOT / "tests" / "fault"))
import harness  # noqa: E402
import memory  # noqa: E402

FLOOD_PER_MS = 40


@pytest.fixture
def field(rng, build):  # noqa: F811
    # The lease is longer than the test: so long a VM goes on without a controller.
    value = harness.Harness(harness.Stage(rng, build), rng, vms=1, lease="60s")
    yield value
    value.close()


def fill(vm):
    """Until the spool has no slot and the rings no room, and for 20,000 events more."""
    vm.rate(FLOOD_PER_MS)
    wait_until(lambda: len(vm.memory.spool()) == memory.SPOOL_SLOTS, 30, "a full spool")
    full = sum(vm.memory.lost())
    wait_until(lambda: sum(vm.memory.lost()) > full + 20000, 30, "events that fit nowhere")
    vm.rate(0)


def assert_accounted(field):
    """By the journal and the memory (the audit), and by what `weft ls` says."""
    assert field.audit() == []
    vm, = field.vms
    _, written, refused = vm.counts()
    told = [sum(batch.losses[n] for batch in field.kept.values()) for n in range(memory.LOSSES)]
    assert told[memory.SPOOL_FULL] > 20000
    assert told[memory.SPOOL_FULL] + told[memory.RING_FULL] + told[memory.RING_BUSY] == refused
    assert sum(batch.reports for batch in field.kept.values()) == written

    def settled():
        one, = field.stage.json("ls", "--all")
        return one if one["written"] == written + refused else None
    listed = wait_until(settled, 15, "its last acknowledgement", 0.2)
    assert listed["stored"] == written and sum(listed["losses"].values()) == refused
    assert listed["losses"]["spool full"] == told[memory.SPOOL_FULL]
    assert "spool full" in field.ask("ls", "--all", "--losses").stdout


def test_the_controller_is_stopped(field):
    os.kill(field.controller.pid, signal.SIGSTOP)
    try:
        fill(field.vms[0])
    finally:
        os.kill(field.controller.pid, signal.SIGCONT)
    assert_accounted(field)


def test_the_controller_is_absent(field):
    field.controller.kill()
    field.controller.wait()
    fill(field.vms[0])
    assert_accounted(field)


def test_the_vm_dies_meanwhile(field):
    """Its memory is nowhere but with its sidecar, which waits for the controller."""
    vm, = field.vms
    os.kill(field.controller.pid, signal.SIGSTOP)
    try:
        fill(vm)
        vm.process.kill()
        vm.process.wait()
        time.sleep(4)
        assert vm.sidecar()
    finally:
        os.kill(field.controller.pid, signal.SIGCONT)
    wait_until(lambda: not vm.sidecar(), 15, "the end of a sidecar that has told everything")
    assert_accounted(field)

# SPDX-License-Identifier: Apache-2.0
"""The wall clock of a host an hour ahead and an hour behind, behind tcp and CURVE keys: leases,
instructions, handshakes and reports go by other clocks. Every process of weft here, the VM's
probe included, sees the shifted one."""
import os
import re
import signal
import sys
import time

import processes
import pytest
from processes import wait_until
from test_faults import build  # noqa: F401  pylint: disable=unused-import

sys.path.insert(0, str(processes.ROOT / "tests" / "fault"))
import harness  # noqa: E402

LEASE_SECONDS = 3  # two heartbeats may come late
HOUR = 3600


@pytest.fixture
def field(rng, build):  # noqa: F811
    stage = harness.Stage(rng, build, address="tcp://127.0.0.1:%d" % processes.free_port(rng))
    keys = stage.directory / "keys"
    stage.weft("keys", keys)
    plain_env = stage.env
    stage.env = lambda **more: plain_env(WEFT_KEYS=str(keys), **more)
    value = harness.Harness(stage, rng, vms=1, lease="%ds" % LEASE_SECONDS)
    yield value
    value.close()


def reported(field):
    field.collect()
    return sum(batch.reports for batch in field.kept.values())


def works_for(field, seconds):
    """The actions hold without a break, and reports come in."""
    before, end = reported(field), time.monotonic() + seconds
    while time.monotonic() < end:
        assert field.vms[0].memory.actions(), "idle, though its controller is there"
        time.sleep(0.02)
    wait_until(lambda: reported(field) > before, 5, "reports")


def instructions_begin_and_end(field):
    """Acknowledged by a VM that the controller reached under this clock."""
    done = field.ask("instruct", "--capture", "service=writer1", "--match", "GET /nothing")
    assert done.returncode == 0 and "active in 1 of 1" in done.stdout + done.stderr, done
    number = re.search(r"instruction (\d+)", done.stdout + done.stderr).group(1)
    assert field.ask("stop", number).returncode == 0


def a_lease_ends(field):
    """Without heartbeats, in its time: not an hour later, and not at once. What this look itself came late by is
    nothing that it can tell."""
    vm, began, late = field.vms[0], time.monotonic(), 0.0
    os.kill(field.controller.pid, signal.SIGSTOP)
    try:
        last = began
        while vm.memory.actions() and last - began < LEASE_SECONDS + 30:
            time.sleep(0.005)
            late, last = max(late, time.monotonic() - last - 0.005), time.monotonic()
    finally:
        os.kill(field.controller.pid, signal.SIGCONT)
    print("a lease of %d s held for %.3f s, seen %.3f s late at most" % (LEASE_SECONDS, last - began, late))
    assert LEASE_SECONDS - 1.3 < last - began < LEASE_SECONDS + 1.0 + late
    wait_until(vm.memory.actions, 10, "actions again")


@pytest.mark.parametrize("hours", [1, -1], ids=["ahead", "behind"])
def test_an_hour_of_wall_clock_changes_nothing(field, hours):
    works_for(field, 0.5)
    field.stage.shift_clock(hours * HOUR)
    works_for(field, LEASE_SECONDS + 1)
    instructions_begin_and_end(field)
    a_lease_ends(field)
    old = field.vms[0].sidecar()
    os.kill(old, signal.SIGKILL)  # its successor shakes hands under this clock
    wait_until(lambda: not field.vms[0].sidecar(), 5, "its end")
    field.recover()
    assert field.vms[0].sidecar() not in (0, old)
    works_for(field, 1)
    field.stage.shift_clock(0)
    works_for(field, LEASE_SECONDS + 1)
    assert field.audit() == [], "exact; and no lease was outlived"
    listed, = field.stage.json("ls")
    assert listed["stored"] == reported(field)

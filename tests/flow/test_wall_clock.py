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


def lease_without_heartbeats(field):
    """How long the actions hold then."""
    vm, began = field.vms[0], time.monotonic()
    os.kill(field.controller.pid, signal.SIGSTOP)
    try:
        wait_until(lambda: not vm.memory.actions(), LEASE_SECONDS + 3, "the end of the lease", 0.005)
        return time.monotonic() - began
    finally:
        os.kill(field.controller.pid, signal.SIGCONT)
        wait_until(vm.memory.actions, 10, "actions again")


def a_lease_ends(field):
    """In its time: not an hour later, and not at once. On a busy machine one may be seen late: three may try."""
    held = []
    while len(held) < 3 and not (held and in_time(held[-1])):
        held.append(lease_without_heartbeats(field))
    print("leases of %d s held for %s" % (LEASE_SECONDS, held))
    assert in_time(held[-1])


def in_time(seconds):
    return LEASE_SECONDS - 1.3 < seconds < LEASE_SECONDS + 1.0


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

# SPDX-License-Identifier: Apache-2.0
"""What can go wrong at one moment. Each function takes a Harness under load, does its harm,
and returns when the harm is over; starting again what is missing is the harness's business.
"""
import contextlib
import os
import resource
import signal
import time

from harness import lives
from processes import PATIENCE, Failed, wait_until

SIDECAR_POINTS = ("ring-read", "batch-seal", "push")
CONTROLLER_POINTS = ("journal-append", "journal-appended", "correlate", "ack")
JOURNAL_POINTS = ("journal-emptied", "journal-renamed")  # of a journal at its bound
POINT_SECONDS = 20
GONE_SECONDS = 30  # CAR_SESSION_GONE_MS


def kill(pid):
    if not pid:  # it would be all of us
        raise Failed("nobody is there to be killed")
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def pause(harness, low=0.0, high=0.6):
    time.sleep(harness.rng.uniform(low, high))


def kill_controller(harness):
    harness.controller.kill()
    harness.controller.wait()
    pause(harness)


def kill_sidecar(harness):
    vm = harness.rng.choice(harness.living())
    kill(vm.sidecar())
    pause(harness)


def kill_vm(harness):
    """Its sidecar lives: nothing of it may be lost, unless the controller takes longer than it waits."""
    vm = harness.rng.choice(harness.living())
    vm.process.kill()
    vm.process.wait()
    began = time.monotonic()
    wait_until(lambda: not vm.sidecar(), 15, "end of the sidecar of " + vm.name)
    waited = time.monotonic() - began
    if waited >= GONE_SECONDS:
        harness.dead_together.add(vm)
    harness.add_vm()
    return "its sidecar waited %.1f s" % waited


def kill_vm_and_sidecar(harness):
    vm = harness.rng.choice(harness.living())
    harness.dead_together.add(vm)
    for pid in harness.rng.sample([vm.sidecar(), vm.pid], 2):
        kill(pid)
    vm.process.wait()
    harness.add_vm()


def kill_all_but_vm(harness):
    vm = harness.rng.choice(harness.living())
    kill(vm.sidecar())
    kill_controller(harness)


def at_sidecar_point(harness):
    """The sidecar that comes after a killed one dies between two steps of its own."""
    order = "%s:%d" % (harness.rng.choice(SIDECAR_POINTS), harness.rng.randrange(1, 40))
    return sidecar_dies_at(harness, order)


def at_controller_point(harness):
    order = "%s:%d" % (harness.rng.choice(CONTROLLER_POINTS), harness.rng.randrange(1, 60))
    return controller_dies_at(harness, order)


def sidecar_dies_at(harness, order):
    """`order` is "point:n", as in common/fault.h. Failed: the point was not reached."""
    vm = harness.rng.choice(harness.living())
    reached = harness.deaths(order)
    kill(vm.sidecar())
    wait_until(lambda: not vm.sidecar(), 5, "end of a killed sidecar")
    harness.attach(vm, order)
    harness.instruct()
    wait_until(lambda: harness.deaths(order) > reached, POINT_SECONDS, "a sidecar at " + order)
    wait_until(lambda: not vm.sidecar(), 5, "its death there")
    return order


def controller_dies_at(harness, order):
    reached = harness.deaths(order)
    harness.controller.kill()
    harness.controller.wait()
    harness.start_controller(order)
    end = time.monotonic() + POINT_SECONDS * PATIENCE
    while harness.controller.poll() is None:
        if time.monotonic() > end:
            raise Failed("the controller lives on behind " + order)
        harness.instruct()
        time.sleep(0.05)
    if harness.controller.returncode != -signal.SIGKILL or harness.deaths(order) == reached:
        raise Failed("the controller ended with %d before %s" % (harness.controller.returncode, order))
    return order


def stop_and_continue(harness, pid):
    seconds = harness.stop_seconds
    if not pid:
        raise Failed("nobody is there to be stopped")
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        os.kill(pid, signal.SIGCONT)
    return "for %g s" % seconds


def stop_controller(harness):
    return stop_and_continue(harness, harness.controller.pid)


def stop_sidecar(harness):
    return stop_and_continue(harness, harness.rng.choice(harness.living()).sidecar())


def stop_vm(harness):
    """A stopped VM does nothing, whatever its memory says; after that it has a second again."""
    vm = harness.rng.choice(harness.living())
    vm.excused_until_ns = 1 << 63
    try:
        return stop_and_continue(harness, vm.pid)
    finally:
        vm.excused_until_ns = time.monotonic_ns() + 1_500_000_000


def flood(harness):
    """More than a stopped sidecar's rings can hold."""
    vm = harness.rng.choice(harness.living())
    vm.rate(60)
    try:
        return stop_and_continue(harness, vm.sidecar())
    finally:
        vm.rate(harness.per_ms)


def cut_network(harness):
    """Nothing passes, nobody is told."""
    harness.wire.cut()
    try:
        time.sleep(harness.stop_seconds)
    finally:
        harness.wire.mend()
    return "for %g s" % harness.stop_seconds


def fill_disk(harness):
    if not harness.mounted:
        return "skipped: needs root"
    ballast = harness.place / "ballast"
    try:
        with open(ballast, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(1 << 20))
        with open(ballast, "ab", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        time.sleep(harness.stop_seconds / 2)
    finally:
        ballast.unlink()
    return "for %g s" % (harness.stop_seconds / 2)


def exhaust_fds(harness):
    """No descriptor more than there are: no accept, no segment, no store's journal."""
    kind, pid = harness.rng.choice([("controller", harness.controller.pid)] +
                                   [("sidecar", vm.sidecar()) for vm in harness.living()])
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (len(os.listdir("/proc/%d/fd" % pid)), hard))
    try:
        time.sleep(harness.stop_seconds / 2)
    finally:
        if lives(pid):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
    return kind


def shift_clock(harness):
    hours = harness.rng.choice((-1, 1))
    harness.stage.shift_clock(3600 * hours)
    pause(harness, 0.5, 1.5)
    if harness.rng.random() < 0.5:
        harness.stage.shift_clock(0)
    return "%+d h" % hours


EVERYWHERE = (kill_controller, kill_sidecar, kill_vm, kill_vm_and_sidecar, kill_all_but_vm, at_sidecar_point,
              at_controller_point, stop_controller, stop_sidecar, stop_vm, flood, fill_disk, exhaust_fds, shift_clock)
ON_A_WIRE = (cut_network, kill_controller, kill_sidecar, cut_network, stop_controller, at_sidecar_point)

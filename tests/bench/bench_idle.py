#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is there while nothing is asked: system calls with the probe in their stack, what the probe takes
of a VM's memory, and memory and wake-ups of the sidecar, with one VM and with a tree of fifty. Real VMs
under light load, joined, without an instruction.
"""
import contextlib
import os
import pathlib
import random
import re
import signal
import statistics
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "tests" / "flow")]
import processes  # noqa: E402
from fixtures_chain import send  # noqa: E402
from fixtures_probe import IDLE, memory_path, sidecar_pid, state  # noqa: E402
from rows import FAILED, row  # noqa: E402
from scenario import plan  # noqa: E402

TRACE_S, CONTROL_S, WAKE_S, WINDOWS = 10, 2, 10, 3
REQUESTS_PAUSE_S = 0.1
VM_KIB, SIDECAR_KIB = 2048, 8192
WAKES_S = 2
TREE = 50
SIGTIMEDWAIT = "128"
YOUNG_S = 6  # until then a sidecar looks whether what `weft run` started executes something else
WARM = 300   # requests, before a size is looked at
NODES = {name: plan.parse(name + "~G~/orders~s1~200~0~100") for name in ("orders", "twin")}
KINDS = [("JVM 17", "jvm", {"jdk": 17}), ("JVM 25", "jvm", {"jdk": 25}), ("CPython", "http", {})]


@contextlib.contextmanager
def light_load(app):
    stopping = threading.Event()

    def ask():
        while not stopping.wait(REQUESTS_PAUSE_S):
            send(app, NODES["orders"])

    client = threading.Thread(target=ask)
    client.start()
    try:
        yield
    finally:
        stopping.set()
        client.join()


def calls_of_the_probe(stage, app, seconds):
    """System calls under light load; and those in whose stacks the probe stands."""
    out = stage.directory / "strace"
    strace = stage.start(["strace", "-qq", "-k", "-f", "-o", out, "-p", app.pid])
    time.sleep(0.5)
    with light_load(app):
        time.sleep(seconds)
    strace.send_signal(signal.SIGINT)
    strace.wait(20)
    calls, ours, counted = 0, 0, True
    for line in out.read_text("utf-8", "replace").splitlines():
        if not line.startswith(" >"):
            calls += 1
            counted = False
        elif "weft" in line and not counted:
            ours += 1
            counted = True
    return calls, ours


def untouched(stage, what, app):
    calls, ours = calls_of_the_probe(stage, app, TRACE_S)
    number = re.search(r"\d+", stage.weft("instruct", "--on", "*").stdout).group()
    _, control = calls_of_the_probe(stage, app, CONTROL_S)
    stage.weft("stop", number)
    processes.wait_until(lambda: state(app.pid)[0] == IDLE, 5, "an idle probe")
    row(what + ": system calls with the probe in them", ours, "", 0,
        "of %d in %d s; %d in %d s under an instruction" % (calls, TRACE_S, control, CONTROL_S))
    if not control:
        FAILED.append("strace shows no stacks")


def mappings(pid):
    """(from, to, name, KiB) of each."""
    found = []
    with open("/proc/%d/smaps" % pid, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            head = re.match(r"([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ \S+\s*(.*)", line)
            if head:
                found.append([int(head[1], 16), int(head[2], 16), head[3], 0])
            elif line.startswith("Rss:"):
                found[-1][3] = int(line.split()[1])
    return found


def stack_pointers(pid):
    """Of the probe's own threads."""
    for task in pathlib.Path("/proc/%d/task" % pid).iterdir():
        if (task / "comm").read_text("ascii").startswith("weft-probe"):
            words = (task / "syscall").read_text("ascii").split()
            yield int(words[-2], 16)


def ours_kib(pid):
    pointers = list(stack_pointers(pid))
    return sum(kib for at, end, name, kib in mappings(pid)
               if "weft" in name or any(at <= pointer < end for pointer in pointers))


def rss_kib(pid):
    return statistics.median(sum(kib for *_, kib in mappings(pid)) for _ in range(5))


def size_in_the_vm(stage, what, app, twin):
    for _ in range(WARM):
        send(app, NODES["orders"])
        send(twin, NODES["twin"])
    before = [rss_kib(one.pid) for one in (app, twin)]
    stage.weft("attach", app.pid)
    time.sleep(1)
    more, twin_more = (rss_kib(one.pid) - then for one, then in zip((app, twin), before))
    row(what + ": memory of the probe in it", max(ours_kib(app.pid), more - twin_more) / 1024, "MB", VM_KIB / 1024,
        "code, shared memory and stack %.2f; in all it grew by %.2f, one left alone by %.2f" % (
            ours_kib(app.pid) / 1024, more / 1024, twin_more / 1024))


def status_of(path):
    return dict(line.split(":", 1) for line in (path / "status").read_text("ascii").splitlines())


def wakeups(pid):
    """Of its own thread, and of all, with those of libzmq."""
    counts = [int(status_of(task)["voluntary_ctxt_switches"]) for task in pathlib.Path("/proc/%d/task" % pid).iterdir()]
    return int(status_of(pathlib.Path("/proc/%d" % pid))["voluntary_ctxt_switches"]), sum(counts)


def idle_sidecar(what, pid):
    sizes, spent = [], []
    for _ in range(WINDOWS):
        before = wakeups(pid)
        end = time.monotonic() + WAKE_S
        while time.monotonic() < end:
            time.sleep(0.05)
            sizes.append(int(status_of(pathlib.Path("/proc/%d" % pid))["VmRSS"].split()[0]) / 1024)
        spent.append([(now - then) / WAKE_S for now, then in zip(wakeups(pid), before)])
        if spent[-1][0] <= WAKES_S / 2:
            break
    spent = min(spent)  # whoever shares the machine only adds to them
    row("sidecar, %s: its size" % what, statistics.median(sizes), "MB", SIDECAR_KIB / 1024, "%.2f to %.2f" % (min(sizes), max(sizes)))
    row("sidecar, %s: wake-ups a second" % what, spent[0], "", WAKES_S, "in %d s; with libzmq's threads %.1f" % (WAKE_S, spent[1]))


def tree(stage):
    port = processes.free_port(stage.rng)
    program = ROOT / "tests" / "flow" / "programs" / "prefork.py"
    master = stage.start([stage.build / "weft", "run", "--service", "pool", "--", processes.PYTHON, program, port, TREE],
                         env=stage.env(), cwd="/")
    began = time.monotonic()
    call = pathlib.Path("/proc/%d/syscall" % master.pid)
    processes.wait_until(lambda: call.read_text("ascii").split()[0] == SIGTIMEDWAIT, 20, "a master that waits")
    master.send_signal(signal.SIGUSR1)
    processes.wait_until(lambda: sum(map(bool, map(memory_path, processes.children_of(master.pid)))) == TREE, 30, "the tree")
    stage.wait_instances(TREE + 1, 30)
    time.sleep(max(0, began + YOUNG_S - time.monotonic()))
    idle_sidecar("a tree of %d" % TREE, sidecar_pid(master.pid))


def main():
    with processes.Stage(random.Random(1)) as stage:
        stage.controller()
        for what, kind, options in KINDS:
            try:
                app, twin = (stage.app(kind, name, **options) for name in NODES)
            except processes.Missing as missing:
                print("%s: missing: %s" % (what, missing))
                continue
            size_in_the_vm(stage, what, app, twin)
            untouched(stage, what, app)
            if kind == "http":
                idle_sidecar("one VM", sidecar_pid(app.pid))
            stage.weft("detach", app.pid)
            for one in app, twin:
                stage.stop(one.process)
        tree(stage)
    return 1 if FAILED else 0


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""A controller, sidecars and VMs under a steady load of events, and the questions that must
have the same answer whatever is killed, stopped or taken away in between.

    F1  per instance: events attempted = stored + dropped by cause + tail, exactly. The tail is
        what a VM that died together with its sidecar left in memory; otherwise it is zero
    F2  no event is stored twice; what is in the journal is in the store, or was shed by a controller that
        could not keep up, and counted
    F3  no lease is outlived by more than a second
    F4  memory, descriptors and journal stay within bounds
"""
import contextlib
import os
import pathlib
import sqlite3
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import journal  # noqa: E402
import memory  # noqa: E402
import processes  # noqa: E402
from processes import Failed, wait_until  # noqa: E402

LEASE_GRACE_NS = 1_000_000_000
TICK_NS = 100_000_000
WATCH_NS = 50_000_000
SHED = "shed by the controller"
RSS_MAX = {"controller": 512 << 20, "sidecar": 96 << 20}
FDS_SLACK = 24
JOURNAL_MAX = 5 * (64 << 20)
DISK_MIB, DISK_STEP_MIB = 384, 256
VM_SECONDS = 15 * processes.PATIENCE


class Stage(processes.Stage):
    """With a wall clock of its own for everything that weft starts here."""

    def __init__(self, rng, build, address=None):
        super().__init__(rng, build=build, address=address)
        self.clock = self.directory / "clock"
        self.clock.write_bytes(bytes(4096))

    def env(self, **more):
        return super().env(LD_PRELOAD=str(self.build / "tests/fault/libclock_shift.so"),
                           WEFT_TEST_CLOCK=str(self.clock),
                           WEFT_AUTOSTART="no",  # ours may be dead just now, and is started again by us
                           WEFT_LOG=str(self.directory / "sidecars.log"), **more)

    def shift_clock(self, seconds):
        with open(self.clock, "r+b", buffering=0) as file:
            file.write(struct.pack("<q", seconds))


def lives(pid):
    try:
        stat = pathlib.Path("/proc/%d/stat" % pid).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return stat[stat.rindex(")") + 2] not in "ZX"


class Vm:
    """One writer of events under `weft run`, its page of counts and the probe's memory."""

    def __init__(self, stage, number, root=None):
        """root: the VM whose tasks it has a part in; else each event is a task of its own."""
        self.name, self.tag = "writer%d" % number, root.tag if root else stage.rng.getrandbits(63) | 1 << 62
        self.page = stage.directory / (self.name + ".page")
        self.page.write_bytes(struct.pack("<IIQI", 0, 0, self.tag, root is not None).ljust(4096, b"\0"))
        with open(stage.directory / (self.name + ".out"), "ab") as out:
            self.process = stage.start(
                [stage.build / "weft", "run", "--service", self.name, "--",
                 stage.build / "tests/fault/event_writer", self.page],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=stage.env(), cwd="/")
        wait_until(lambda: self._words()[1] == 1 or self.process.poll() is not None, 15, self.name)
        if not self.alive():
            text = (stage.directory / (self.name + ".out")).read_text(errors="replace")
            raise Failed("%s ended with %s: %s" % (self.name, self.process.returncode, text.strip()))
        self.memory = memory.Memory(self.process.pid)
        self.excused_until_ns = 0

    def _words(self):
        return struct.unpack_from("<IIQ", self.page.read_bytes())

    def counts(self):
        """(begun, written, refused) of all its threads."""
        data = self.page.read_bytes()
        threads = [struct.unpack_from("<QQQ", data, 64 + 64 * n) for n in range(2)]
        return tuple(map(sum, zip(*threads)))

    def rate(self, per_ms):
        with open(self.page, "r+b", buffering=0) as file:
            file.write(struct.pack("<I", per_ms))

    @property
    def pid(self):
        return self.process.pid

    def alive(self):
        return self.process.poll() is None

    def sidecar(self):
        pid = self.memory.sidecar()
        return pid if pid and lives(pid) else 0

    def untold(self):
        return self.memory.untold()


class Watch(threading.Thread):
    """F3, looked at every 50 ms from outside. Where the look itself comes late, somebody else has the
    processors: so late, and less and less for a while, a VM may be, too."""

    def __init__(self, vms):
        super().__init__(daemon=True)
        self.vms, self.faults, self.looks, self.ending = vms, [], 0, threading.Event()
        self.late_ns = self.latest_ns = 0

    def run(self):
        last = time.monotonic_ns()
        while not self.ending.wait(WATCH_NS / 1e9):
            now = time.monotonic_ns()
            self.late_ns = max(now - last - WATCH_NS, int(0.95 * self.late_ns))
            self.latest_ns = max(self.late_ns, self.latest_ns)
            last = now
            for vm in list(self.vms):
                self.look(vm)

    def look(self, vm):
        now = time.monotonic_ns()
        lease = vm.memory.lease_until_ns()
        actions = vm.memory.actions()
        self.looks += 1
        if actions and lease + LEASE_GRACE_NS + self.late_ns < now and vm.alive() and now > vm.excused_until_ns \
                and vm.memory.lease_until_ns() == lease:
            self.faults.append("%s acts %d ms after the end of its lease" % (vm.name, (now - lease) // 1_000_000))


class Harness:
    def __init__(self, stage, rng, say=print, vms=2, per_ms=3, listen=None, lease="5s", options=(), disk_mib=DISK_MIB):
        """options: of the controller."""
        self.disk_mib = disk_mib
        self.stage, self.rng, self.say_line = stage, rng, say
        self.listen, self.lease, self.options = listen or stage.address, lease, options
        self.wire, self.stop_seconds = None, 3
        self.began, self.per_ms = time.monotonic(), per_ms
        self.vms, self.dead_together, self.highest_fds, self.controller = [], set(), {}, None
        self.made = self.instructed = 0
        self.kept, self.read = {}, {}
        self.place = stage.directory / "kept"
        self.place.mkdir(mode=0o700)
        self.mounted = os.geteuid() == 0 and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "mode=0700,size=%dm" % disk_mib, "weft-fault", self.place],
            check=False, stderr=subprocess.DEVNULL).returncode == 0
        self.watch = Watch(self.vms)
        try:
            self.start_controller()
            self.await_controller()
            for _ in range(vms):
                self.add_vm()
            self.recover()
        except BaseException:
            self.close()
            raise
        self.watch.start()

    def close(self):
        self.watch.ending.set()
        if self.watch.is_alive():
            self.watch.join()
        self.stage.keep = True  # the mount goes first
        self.stage.close()
        if self.mounted:
            subprocess.run(["umount", self.place], check=False)
        self.stage.keep = False
        self.stage.close()

    def say(self, text):
        self.say_line("%9.3f  %s" % (time.monotonic() - self.began, text))

    # ---- what runs ---------------------------------------------------------

    def collect(self):
        """What the journal held before the next controller tidies it: old segments may go, once
        what is in them is in the store."""
        for path in sorted((self.place / "journal").glob("*.weftj")):
            with contextlib.suppress(FileNotFoundError):  # its time has come meanwhile
                stat = path.stat()
                seen = stat.st_size, stat.st_mtime_ns  # one that is used again does not grow
                if self.read.get(path.name) != seen:
                    journal.add_batches(path, self.kept)
                    # What was written just now may be followed by more at the same time.
                    self.read[path.name] = seen if time.time_ns() - stat.st_mtime_ns > TICK_NS else None

    def start_controller(self, fault=None):
        self.collect()
        env = self.stage.env(**({"WEFT_FAULT": fault} if fault else {}))
        with open(self.stage.directory / "controller.out", "ab") as out:
            self.controller = self.stage.start(
                [self.stage.build / "weft", "controller", "--listen", self.listen, "--journal", self.place / "journal",
                 "--store", self.place / "weft.db", *self.options],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, cwd="/")

    def ask(self, *words):
        return self.stage.weft(*words, "--controller", self.listen, check=False, timeout=15)

    def add_vm(self, root=None):
        end, vm = time.monotonic() + VM_SECONDS, None
        while not vm:  # `weft run` gives up on a controller that is stopped
            self.made += 1
            try:
                vm = Vm(self.stage, self.made, root)
            except Failed as failure:
                self.say("  " + str(failure))
                if time.monotonic() > end:
                    raise
                time.sleep(0.3)
        vm.rate(self.per_ms)
        self.vms.append(vm)
        return vm

    def attach(self, vm, fault=None):
        env = {"WEFT_FAULT": fault} if fault else {}
        return subprocess.run([self.stage.build / "weft-instance", "attach", "--service", vm.name, str(vm.pid)],
                              env=self.stage.env(**env), capture_output=True, text=True, timeout=15 * processes.PATIENCE, check=False)

    def living(self):
        return [vm for vm in self.vms if vm.alive()]

    def make_room(self):
        """A long session stores more than its small disk holds: fullness is for a moment, not for good."""
        if not self.mounted:
            return
        disk = os.statvfs(self.place)
        if disk.f_bavail >= disk.f_blocks // 4:
            return
        self.disk_mib += DISK_STEP_MIB
        self.say("disk of %d MiB" % self.disk_mib)
        subprocess.run(["mount", "-o", "remount,size=%dm" % self.disk_mib, self.place], check=True)

    def recover(self):
        """Starts again whatever is missing, until events flow in every living VM."""
        self.make_room()
        if self.controller.poll() is not None:
            self.start_controller()
        self.await_controller()
        for vm in self.living():
            if not vm.sidecar():
                done = self.attach(vm)
                if not vm.sidecar():
                    raise Failed("cannot attach to %s: %s" % (vm.name, done.stderr))
        self.instruct()
        wait_until(lambda: all(vm.memory.actions() for vm in self.living()), 20, "actions in every VM")

    def await_controller(self):
        """At its own address, and at the one where sidecars look for it."""
        for address in dict.fromkeys((self.listen, self.stage.address)):
            wait_until(lambda: self.stage.weft("ls", "--controller", address, check=False).returncode == 0, 15,
                       "answer of the controller at " + address, 0.1)

    def instruct(self):
        """One instruction a life of a controller. It may die on the way."""
        if self.instructed != self.controller.pid and \
                self.ask("instruct", "--on", "*", "--lease", self.lease).returncode == 0:
            self.instructed = self.controller.pid

    def deaths(self, order):
        """How often a process here has said that it dies at "point:n"."""
        texts = [path.read_text(errors="replace") for path in
                 (self.stage.directory / "controller.out", self.stage.directory / "sidecars.log") if path.exists()]
        return sum(text.splitlines().count("dies at " + order) for text in texts)

    # ---- F4 ----------------------------------------------------------------

    def sample(self):
        found = []
        pids = [("controller", self.controller.pid)] + [("sidecar", vm.sidecar()) for vm in self.living()]
        for kind, pid in pids:
            with contextlib.suppress(OSError, IndexError):
                status = pathlib.Path("/proc/%d/status" % pid).read_text(encoding="utf-8")
                rss = int(status.split("VmRSS:")[1].split()[0]) * 1024
                fds = len(os.listdir("/proc/%d/fd" % pid))
                low = self.highest_fds.setdefault(pid, fds)
                if rss > RSS_MAX[kind]:
                    found.append("%s %d holds %d MiB" % (kind, pid, rss >> 20))
                if fds > low + FDS_SLACK:
                    found.append("%s %d holds %d descriptors, had %d" % (kind, pid, fds, low))
        kept = journal.size(self.place / "journal")
        if kept > JOURNAL_MAX:
            found.append("the journal holds %d MiB" % (kept >> 20))
        return found

    # ---- F1, F2 ------------------------------------------------------------

    def quiet(self):
        """Ends the load and waits until everything that can arrive has arrived."""
        self.stage.shift_clock(0)
        for vm in self.vms:
            vm.rate(0)
        self.recover()
        time.sleep(0.05)

        def waiting():
            return ["%s: %d unread, %d batches, %d losses untold" %
                    (vm.name, vm.memory.unread(), len(vm.memory.spool()), vm.untold()) for vm in self.living()
                    if vm.memory.unread() or vm.memory.spool() or vm.untold()]

        with contextlib.suppress(Failed):
            wait_until(lambda: not waiting(), 30, "rings and spools to run empty", 0.1)
        return ["after 30 s: " + text for text in waiting()]

    def audit(self):
        """Findings, a line each; also what the figures were."""
        late = self.quiet()
        self.say("looks at leases came %d ms late at most" % (self.watch.latest_ns // 1_000_000))
        self.collect()
        kept = self.kept
        findings, seen, stored = late + self.watch.faults, {}, {}
        for batch in kept.values():
            for task in batch.tasks:
                if task in seen:
                    findings.append("event %s stands in batches %d and %d" % (task.hex(), seen[task], batch.number))
                seen[task] = batch.number
        for vm in self.vms:
            findings += self.audit_vm(vm, kept, stored)
        findings += self.audit_store(stored)
        return findings

    def audit_vm(self, vm, kept, stored):
        begun, written, refused = vm.counts()
        mine = [batch for batch in kept.values() if batch.start == vm.memory.start()]
        reports = sum(batch.reports for batch in mine)
        stored[vm.tag] = reports
        told = [sum(batch.losses[n] for batch in mine) for n in range(memory.LOSSES)]
        dropped = sum(told) - told[memory.OWNER_DIED]
        waiting = [journal.Batch(frame) for _, frame in vm.memory.spool()]
        waiting = [batch for batch in waiting if batch.key not in kept]
        spooled = sum(b.reports + sum(b.losses) - b.losses[memory.OWNER_DIED] for b in waiting)
        tail = vm.memory.unread() + spooled + vm.untold()
        attempted = vm.memory.written() + sum(vm.memory.lost()[:2])
        self.say("%s: %d attempted = %d stored + %d dropped %s + %d tail" %
                 (vm.name, attempted, reports, dropped, told, tail))
        findings = []
        # A writer killed between two counts: at most one a ring that it held, one a thread.
        unsure = 0 if vm.alive() else vm.memory.held()
        if not attempted - unsure <= reports + dropped + tail <= attempted:
            findings.append("%s: %d attempted, %d stored, %d dropped, %d tail: %d are missing" %
                            (vm.name, attempted, reports, dropped, tail, attempted - reports - dropped - tail))
        if not written + refused <= attempted <= begun:
            findings.append("%s: counted %d + %d of %d begun itself, its memory says %d" %
                            (vm.name, written, refused, begun, attempted))
        if vm.alive() and begun != written + refused:
            findings.append("%s: %d begun, %d + %d ended" % (vm.name, begun, written, refused))
        if tail and vm not in self.dead_together:
            findings.append("%s: a tail of %d, though it did not die together with its sidecar" % (vm.name, tail))
        return findings

    def audit_store(self, stored):
        def count(tag):
            first = struct.pack(">Q", tag)
            with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % (self.place / "weft.db"), uri=True)) as db:
                return sum(ids[at:at + 8] == first for ids, in db.execute("SELECT ids FROM burst")
                           for at in range(0, len(ids), 16))

        def shed():
            found = dict.fromkeys((vm.name for vm in self.vms), 0)
            for one in self.stage.json("ls", "--all", "--controller", self.listen):
                found[one["service"]] += one["losses"][SHED]
            return found

        def arrived(lost):
            return all(count(vm.tag) + lost[vm.name] >= stored[vm.tag] for vm in self.vms)

        with contextlib.suppress(Failed):
            wait_until(lambda: arrived(shed()), 15, "the store", 0.3)
        lost = shed()
        for one in self.stage.json("ls", "--all", "--controller", self.listen):
            self.say("`weft ls`: %s wrote %s, stored %s, lost %s" % (
                one["service"], one["written"], one["stored"], {cause: n for cause, n in one["losses"].items() if n}))
        if any(lost.values()):
            self.say("shed: %s" % lost)
        return ["%s: %d of %d journalled events are in the store, %d were shed" %
                (vm.name, count(vm.tag), stored[vm.tag], lost[vm.name])
                for vm in self.vms if count(vm.tag) + lost[vm.name] != stored[vm.tag]]

# SPDX-License-Identifier: Apache-2.0
"""Processes that are joined while they wait, work or allocate, and a sidecar that is killed
while it joins them."""
import contextlib
import ctypes
import os
import pathlib
import signal
import struct
import subprocess
import time

import processes

PROGRAMS = processes.ROOT / "tests" / "flow" / "programs"
PR_SET_CHILD_SUBREAPER = 36


def build(directory, *flags, name="waits"):
    """The program of tests/flow/programs, compiled; its path."""
    path = pathlib.Path(directory) / name
    done = subprocess.run(["gcc", "-O2", "-g", "-o", path, PROGRAMS / "waits.c", "-pthread", *flags],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise processes.Failed("gcc: " + done.stderr)
    return path


class Victim:
    """`waits MODE`: counts what it does, ends at the first surprise."""

    def __init__(self, stage, program, mode, prefix=(), **options):
        self.page = stage.directory / ("page-%d" % time.monotonic_ns())
        self.page.write_bytes(bytes(4096))
        self.page.chmod(0o666)
        self.output = stage.directory / (self.page.name + ".out")
        with open(self.output, "wb") as out:
            self.process = stage.start([*prefix, program, mode, self.page], stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=out, **options)
        self.pid = self.process.pid
        self.goes_on()

    def count(self):
        return struct.unpack_from("<Q", self.page.read_bytes())[0]

    def goes_on(self, more=3):
        seen = self.count()

        def on():
            self.check()
            return self.count() >= seen + more

        processes.wait_until(on, 20, "the victim to go on")

    def check(self):
        """Ended is offended."""
        if self.process.poll() is not None:
            raise processes.Failed("the victim ended with %d: %s" % (
                self.process.returncode, self.output.read_text(errors="replace")))


def inventory(pid):
    """What must be the same again: counts of mappings, descriptors and threads."""
    root = pathlib.Path("/proc/%d" % pid)
    with open(root / "maps", encoding="utf-8", errors="replace") as maps:
        lines = [line.split(None, 5) for line in maps]
    return {
        "mappings": len(lines),
        # libm comes and goes with the threads that load it
        "executable": sum("x" in line[1] and "libm.so" not in line[-1] for line in lines),
        "descriptors": len(os.listdir(root / "fd")),
        "threads": len(os.listdir(root / "task")),
    }


def state(pid):
    text = pathlib.Path("/proc/%d/stat" % pid).read_text(encoding="utf-8", errors="replace")
    return text[text.rindex(")") + 2]


@contextlib.contextmanager
def reaping():
    """Orphans below us become our children meanwhile, so that a sidecar is seen at once. Not for longer:
    nobody here would take the exit status of another test's."""
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def children():
    return set(processes.children_of(os.getpid()))


def attach_and_kill(stage, pid, delay_s, *options):
    """While reaping (): starts `weft-instance attach` and kills its sidecar delay_s after it came up. Whether it
    was killed before it had joined."""
    before = children()
    attach = subprocess.Popen([stage.build / "weft-instance", "attach", "--any", "--json", *options, str(pid)],
                              env=stage.env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 10 * processes.PATIENCE
    sidecar = None
    while sidecar is None and time.monotonic() < end:
        for one in children() - before - {attach.pid}:
            sidecar = one
        if attach.poll() is not None and sidecar is None:
            break
    if sidecar is None:
        out, said = attach.communicate()
        raise processes.Failed("no sidecar came up: %d %s %s" % (attach.returncode, out.strip(), said.strip()))
    until = time.monotonic() + delay_s
    while time.monotonic() < until:
        pass
    with contextlib.suppress(ProcessLookupError):
        os.kill(sidecar, signal.SIGKILL)
    out, _ = attach.communicate(timeout=150)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(sidecar, 0)
    return not out.strip()

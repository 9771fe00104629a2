#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""joining [--cycles N] [--kills N] [--seed S] [--build DIR] [--only NAME]: attach and detach N times each of a
JVM 17, a JVM 25, a CPython under load, an idle and a busy one, a program with eight threads in malloc
and dlopen, and one that every interrupted wait offends; then N sidecars killed at random moments of
joining. Clients treat every error as fatal. Beside each runs another of its kind that is left alone, for
as long and under the same load (A/A): size and mappings may grow by no more than that one's, give or take
what is named below. Prints a line for each, then `cycles N, kills N, findings N`; exit 1 if there is a
finding.
"""
import argparse
import pathlib
import random
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "tests" / "flow")]
import processes  # noqa: E402
import victims  # noqa: E402
from fixtures_chain import send  # noqa: E402
from fixtures_load import Load, look  # noqa: E402
from scenario import plan  # noqa: E402

SERVICES = "orders", "twin"
NODE, TWIN = (plan.parse(name + "~G~/orders~s1~200~0~100") for name in SERVICES)
WARM = 10            # cycles until arenas, stacks and caches have their size …
WARM_JIT = 200       # … and the compilers of a JVM have done their work
LOOKS = 50           # for a moment at which it has nothing of its own open
SAMPLES = 15         # of size and mappings, at the beginning and at the end
DRIFT_KIB = 2048     # what its own work makes the size of a process waver by
NOISE_KIB = 1024     # by which two of a kind that are left alone grow apart …
NOISE_JIT_KIB = 4096 # … where one of them has compiled another method again
NOISE_MAPPINGS = 16  # arenas of malloc, stacks of threads
HEAP = ["-Xms64m", "-Xmx64m", "-XX:+AlwaysPreTouch"]  # a size that its work does not change
PAUSE_S = 0.02       # of a client: joining is to meet requests, not to wait behind them
KILL_WINDOW_S = 0.012
BUSY = "import threading\ndef f():\n    while True: [bytearray(5000) for _ in range(50)]\n" \
       "for _ in range(3): threading.Thread(target=f, daemon=True).start()\nf()\n"


def rss_kib(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4


class Kind:
    """A process, another one of the same kind and under the same load that is left alone (A/A), and how
    one sees that it goes on."""

    def __init__(self, name, pid, twin, load=None, goes_on=None):
        self.name, self.pid, self.twin, self.load = name, pid, twin, load
        self.jit = name.startswith("JVM")
        self.goes_on = goes_on or (lambda: None)


def under_load(stage, name, app, twin):
    with Load(app, NODE, 2, PAUSE_S) as load, Load(twin, TWIN, 2, PAUSE_S):
        yield Kind(name, app.pid, twin.pid, load, load.goes_on)
    for one in app, twin:
        stage.stop(one.process)


def alone(stage, name, make, goes_on=lambda process: None):
    process, twin = make(), make()
    time.sleep(1)
    yield Kind(name, process.pid, twin.pid, goes_on=lambda: goes_on(process))
    for one in process, twin:
        stage.stop(getattr(one, "process", one))


def kinds(stage, program):
    for version in (17, 25):
        try:
            yield from under_load(stage, "JVM %d" % version,
                                  *(stage.app("jvm", name, jdk=version, options=HEAP) for name in SERVICES))
        except processes.Missing as missing:
            print("missing: %s" % missing)
    yield from under_load(stage, "CPython", *(stage.app("http", name) for name in SERVICES))
    yield from alone(stage, "CPython, idle", lambda: stage.app("http", SERVICES[0]), lambda app: send(app, NODE))
    yield from alone(stage, "CPython, four threads at work", lambda: stage.start([processes.PYTHON, "-c", BUSY]))
    for mode in ("threads", "mixed"):
        yield from alone(stage, "waits " + mode, lambda: victims.Victim(stage, program, mode),
                         lambda victim: victim.goes_on(1))


def settled(pid):
    """Its size and number of mappings: what it has for a moment only is none of it."""
    sizes, mappings = [], []
    for _ in range(SAMPLES):
        sizes.append(rss_kib(pid))
        mappings.append(victims.inventory(pid)["mappings"])
        time.sleep(0.02)
    return statistics.median(sizes), statistics.median(mappings)


class Drift:
    """How size and mappings of the process and of its twin change."""

    def __init__(self, kind):
        self.kind, self.base = kind, [settled(pid) for pid in (kind.pid, kind.twin)]

    def end(self):
        """Both drifts, and the findings."""
        drifts = [tuple(now - then for now, then in zip(settled(pid), base))
                  for pid, base in zip((self.kind.pid, self.kind.twin), self.base)]
        (size, mappings), (twin_size, twin_mappings) = drifts
        findings = []
        if size > max(twin_size, 0) + (NOISE_JIT_KIB if self.kind.jit else NOISE_KIB) or (size > DRIFT_KIB and not self.kind.load):
            findings.append("%s: %+d KiB, its twin %+d KiB" % (self.kind.name, size, twin_size))
        if mappings > max(twin_mappings, 0) + NOISE_MAPPINGS:
            findings.append("%s: %+d mappings, its twin %+d" % (self.kind.name, mappings, twin_mappings))
        return "size %+d KiB (A/A %+d), mappings %+d (A/A %+d)" % (size, twin_size, mappings, twin_mappings), findings


def cycle(stage, kind, count):
    """The findings, and how the process drifted."""
    findings, saved, base, drift = [], stage.directory / ("before-%d" % kind.pid), None, None
    look(kind.pid, "--save", saved)
    warm = min(WARM_JIT if kind.jit else WARM, count // 2)
    for number in range(count):
        stage.weft("attach", "--any", kind.pid)
        left = stage.weft("detach", kind.pid, check=False)
        if left.returncode or "verified" not in left.stdout:
            findings.append(f"{kind.name}, cycle {number}: {left.returncode} {left.stdout.strip()} {left.stderr.strip()}")
        if number % 10 == 0:
            kind.goes_on()
        if number == warm:
            base, drift = victims.inventory(kind.pid), Drift(kind)
    kind.goes_on()
    compared = look(kind.pid, "--compare", saved)
    if compared.returncode:
        left = [line for line in compared.stdout.splitlines() if line.startswith("LEFT")]
        findings += [f"{kind.name}: {line}" for line in left or [compared.stdout + compared.stderr]]
    for _ in range(LOOKS):  # what it opens and closes itself comes and goes
        now = victims.inventory(kind.pid)
        same = now["executable"] == base["executable"] and (kind.load or now["descriptors"] <= base["descriptors"])
        if same:
            break
        time.sleep(0.02)
    if not same:
        findings.append(f"{kind.name}: {now}, after {warm} cycles {base}")
    said, found = drift.end()
    return findings + found, said


def kill(stage, program, count, rng):
    findings, killed = [], 0
    for mode in ("poll", "sem", "busy", "nanosleep", "threads"):
        victim = victims.Victim(stage, program, mode)
        for _ in range(count // 5):
            delay_s = rng.uniform(0, KILL_WINDOW_S)
            try:
                killed += victims.attach_and_kill(stage, victim.pid, delay_s)
                victim.goes_on(1)
                stage.weft("attach", "--any", victim.pid)
                stage.weft("detach", victim.pid)
                victim.goes_on(1)
            except processes.Failed as failure:
                findings.append(f"{mode}, killed after {delay_s * 1e3:.3f} ms: {failure}")
                break
        stage.stop(victim.process)
    return findings, killed


def new_controller(stage, name):
    """One that has not seen thousands of instances of others."""
    stage.address = "ipc://%s/ctl-%s" % (stage.directory, name)
    process = stage.controller("--store", stage.directory / ("%s.db" % name), wait=False)
    processes.wait_until((stage.directory / ("ctl-%s" % name) / "control").exists, 20, "a controller")
    return process


def run(seed, cycles, kills, build, only):
    rng, findings = random.Random(seed), []
    print("seed %d" % seed)
    with victims.reaping(), processes.Stage(rng, build=build) as stage:
        program = victims.build(stage.directory)
        for number, kind in enumerate(kinds(stage, program)):
            if only not in kind.name:
                continue
            controller = new_controller(stage, number)
            found, drift = cycle(stage, kind, cycles)
            stage.stop(controller)
            print("%-32s %d cycles, %s, %d findings" % (kind.name, cycles, drift, len(found)), flush=True)
            findings += found
            for line in found:
                print("  " + line, flush=True)
        new_controller(stage, "killed")
        found, killed = kill(stage, program, kills, rng)
        print("%-32s %d, of these %d before they had joined, %d findings" % ("sidecars killed", kills, killed, len(found)))
        for line in found:
            print("  " + line)
        findings += found
    return findings


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cycles", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--build", type=pathlib.Path, default=processes.BUILD)
    parser.add_argument("--only", default="", help="kinds whose name has this in it")
    options = parser.parse_args()
    findings = run(options.seed or processes.draw_seed(), options.cycles, options.kills, options.build.resolve(),
                   options.only)
    print("cycles %d, kills %d, findings %d" % (options.cycles, options.kills, len(findings)))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

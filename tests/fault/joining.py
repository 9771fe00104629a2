#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""joining [--cycles N] [--kills N] [--seed S] [--build DIR]: attach and detach N times each of a
JVM 17, a JVM 25, an idle and a busy CPython, a program with eight threads in malloc and dlopen, and
one that every interrupted wait offends; then N sidecars killed at random moments of joining. Clients
treat every error as fatal. Prints a line for each, then `cycles N, kills N, findings N`; exit 1 if
there is a finding.
"""
import argparse
import pathlib
import random
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "tests" / "flow")]
import processes  # noqa: E402
import victims  # noqa: E402
from fixtures_load import Load, look  # noqa: E402
from scenario import plan  # noqa: E402

NODE = plan.parse("orders~G~/orders~s1~200~0~100")
WARM = 10            # cycles until arenas, stacks and caches have their size
LOOKS = 50           # for a moment at which it has nothing of its own open
DRIFT_KIB = 2048     # what its own work makes the size of a process waver by
KILL_WINDOW_S = 0.012
BUSY = "import threading\ndef f():\n    while True: [bytearray(5000) for _ in range(50)]\n" \
       "for _ in range(3): threading.Thread(target=f, daemon=True).start()\nf()\n"


def rss_kib(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4


class Kind:
    """One process, whatever keeps it at work, and how one sees that it goes on."""

    def __init__(self, name, pid, load=None, goes_on=None):
        self.name, self.pid, self.load = name, pid, load
        self.goes_on = goes_on or (lambda: None)


def under_load(stage, name, app):
    with Load(app, NODE, 2) as load:
        yield Kind(name, app.pid, load, load.goes_on)
    stage.stop(app.process)


def kinds(stage, program):
    for version in (17, 25):
        try:
            yield from under_load(stage, "JVM %d" % version, stage.app("jvm", "orders", jdk=version))
        except processes.Missing as missing:
            print("missing: %s" % missing)
    yield from under_load(stage, "CPython", stage.app("http", "orders"))
    busy = stage.start([processes.PYTHON, "-c", BUSY])
    time.sleep(1)
    yield Kind("CPython, four threads at work", busy.pid)
    stage.stop(busy)
    for mode in ("threads", "mixed"):
        victim = victims.Victim(stage, program, mode)
        yield Kind("waits " + mode, victim.pid, goes_on=lambda: victim.goes_on(1))
        stage.stop(victim.process)


def cycle(stage, kind, count):
    """The findings, and how far the size drifted."""
    findings, saved, base, size = [], stage.directory / ("before-%d" % kind.pid), None, 0
    look(kind.pid, "--save", saved)
    for number in range(count):
        stage.weft("attach", "--any", kind.pid)
        left = stage.weft("detach", kind.pid).stdout
        if "verified" not in left:
            findings.append(f"{kind.name}, cycle {number}: {left.strip()}")
        if number % 10 == 0:
            kind.goes_on()
        if number == min(WARM, count - 1):
            base, size = victims.inventory(kind.pid), rss_kib(kind.pid)
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
        findings.append(f"{kind.name}: {now}, after {WARM} cycles {base}")
    return findings, rss_kib(kind.pid) - size


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


def run(seed, cycles, kills, build):
    rng, findings = random.Random(seed), []
    print("seed %d" % seed)
    with victims.reaping(), processes.Stage(rng, build=build) as stage:
        stage.controller()
        program = victims.build(stage.directory)
        for kind in kinds(stage, program):
            found, drift = cycle(stage, kind, cycles)
            print("%-32s %d cycles, size %+d KiB, %d findings" % (kind.name, cycles, drift, len(found)), flush=True)
            if drift > DRIFT_KIB and not kind.load:
                found.append(f"{kind.name}: {drift} KiB more")
            findings += found
            for line in found:
                print("  " + line, flush=True)
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
    options = parser.parse_args()
    findings = run(options.seed or processes.draw_seed(), options.cycles, options.kills, options.build)
    print("cycles %d, kills %d, findings %d" % (options.cycles, options.kills, len(findings)))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

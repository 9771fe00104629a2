#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""session [--moments N] [--seed S] [--stop SECONDS] [--each N] [--build DIR]: sessions of some
moments each, until N have passed; every session ends with the audit of harness.py. Prints
every moment with its time, then `moments N, findings M`; exit 1 if there is a finding.
"""
import argparse
import pathlib
import random
import sys

import harness
import moments
import processes
import wire

PAUSE = 0.2, 1.0  # seconds of load before each moment


def one_session(rng, build, plan, stop_seconds, say, on_wire=False):
    """Runs the moments of `plan` over one load; the findings, a line each."""
    findings = []
    stage = harness.Stage(rng, build)
    line = wire.Wire(stage, rng) if on_wire else None
    if line:
        stage.address = line.near
    field = None
    try:
        field = harness.Harness(stage, rng, say, listen=line.far if line else None)
        field.wire, field.stop_seconds = line, stop_seconds
        for moment in plan:
            moments.pause(field, *PAUSE)
            field.say(moment.__name__)
            field.say("  over: %s" % (moment(field) or ""))
            findings += field.sample()
            field.recover()
        findings += field.audit()
    except processes.Failed as failure:
        findings.append(str(failure))
    finally:
        findings += ["controller: " + text for text in stage_log(stage) if "cannot" in text or "rror" in text or "verload" in text][:6] \
            if findings else []
        if line:
            line.close()
        if field:
            field.close()
        else:
            stage.close()
    for finding in findings:
        say("FINDING " + finding)
    return findings


def stage_log(stage):
    path = stage.directory / "controller.out"
    return path.read_text(errors="replace").splitlines() if path.exists() else []


def draw_plan(rng, count, kinds):
    """Every kind once before any comes again, in an order of its own."""
    plan = []
    while len(plan) < count:
        plan += rng.sample(kinds, len(kinds))
    return plan[:count]


def run(seed, count, each, stop_seconds, build, say=print):
    rng = random.Random(seed)
    say("WEFT_SEED=%d" % seed)
    wired = count // 8
    plan = draw_plan(rng, count - wired, moments.EVERYWHERE)
    findings = []
    while plan:
        now, plan = plan[:each], plan[each:]
        findings += one_session(rng, build, now, stop_seconds, say)
    plan = (list(moments.ON_A_WIRE) * (wired // len(moments.ON_A_WIRE) + 1))[:wired]
    while plan:
        now, plan = plan[:each], plan[each:]
        findings += one_session(rng, build, now, stop_seconds, say, on_wire=True)
    say("moments %d, findings %d" % (count, len(findings)))
    return findings


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--moments", type=int, default=20)
    parser.add_argument("--seed", type=int, default=processes.draw_seed())
    parser.add_argument("--stop", type=float, default=3, help="seconds of a SIGSTOP or a cut")
    parser.add_argument("--each", type=int, default=7, help="moments a session")
    parser.add_argument("--build", default=processes.ROOT / "build" / "faults")
    given = parser.parse_args()
    build = pathlib.Path(given.build).absolute()
    return 1 if run(given.seed, given.moments, given.each, given.stop, build,
                    lambda text: print(text, flush=True)) else 0


if __name__ == "__main__":
    sys.exit(main())

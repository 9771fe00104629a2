# SPDX-License-Identifier: Apache-2.0
"""replay-chaos: harms recordings in every way that tests/support/chaos.py knows, replays them, and
compares with the unharmed answer. Never a crash, never a wrong parent, every loss counted; another
order or a repetition changes nothing at all, byte for byte. Ends with the seed of what failed."""
import argparse
import collections
import pathlib
import random
import sys

import chaos
import processes
import recording
import replays


def parents(lines):
    """{(task, subtask or request id): parent}; what is one-sided goes by its request."""
    found = {}
    for execution in replays.parse(lines):
        for each in execution["subtasks"]:
            found[execution["task"], each["id"]] = each["parent"]
            if each["request"]:
                found[execution["task"], "request " + each["request"]] = each["parent"]
    return found


def wrong_parents(now, before):
    """Whoever has a parent has the one that it has in the unharmed answer."""
    return [key for key, parent in now.items() if parent and before.get(key, parent) != parent
            or key not in before and not key[1].startswith("request ") and "request " + key[1] not in
            [k[1] for k in before if k[0] == key[0]]]


def places(lines):
    """{(task, id): (start after the top's, how far that may be off)} of what stands on one clock."""
    return {(execution["task"], each["id"]): (each["start_ns"] - execution["start_ns"],
                                              execution["clock_uncertainty_ns"])
            for execution in replays.parse(lines) for each in execution["subtasks"]
            if execution["clock"] == "aligned" or execution["clock_uncertainty_ns"] == 0}


def misplaced(lines, sound):
    """Subtasks that are further from where they belong than is told; None: nothing was aligned at all."""
    truth = places(sound)
    now = {key: place for key, place in places(lines).items() if place[1] and key in truth}
    return [key for key, (start, off) in now.items() if abs(start - truth[key][0]) > off] if now else None


def faults_of(harm, numbers, lines, sound):
    faults = ["%s is %s, not %s" % (key, numbers[key], wanted)
              for key, wanted in harm.expect.items() if numbers[key] != wanted]
    if not numbers["whole"]:
        faults.append("not everything was acknowledged")
    if harm.promise == chaos.SAME and lines != sound:
        faults.append("the answer differs from that of the unharmed recording")
    if harm.promise == chaos.TREES and parents(lines) != parents(sound):
        faults.append("the trees differ from those of the unharmed recording")
    if harm.promise == chaos.TREES:
        wrong = misplaced(lines, sound)
        faults += ["no execution was put on one clock"] if wrong is None else []
        faults += ["%d subtasks are further off than told, the first %s in task %s"
                   % (len(wrong), *reversed(wrong[0]))] if wrong else []
    if harm.promise == chaos.SUBSET:
        wrong = wrong_parents(parents(lines), parents(sound))
        faults += ["%d wrong parents, the first of %s in task %s" % (len(wrong), *reversed(wrong[0]))] if wrong else []
    return faults


def one(path, name, seed, sound, directory):
    head, frames = recording.read(path)
    harm = chaos.HARMS[name](random.Random("%d %s %s" % (seed, name, path.stem)), head, frames)
    harmed = directory / ("%s-%s.weftr" % (path.stem, name))
    harmed.write_bytes(harm.data)
    try:
        numbers, _, lines = replays.of(harmed)
    except processes.Failed as error:
        return ["%s" % error]
    return faults_of(harm, numbers, lines, sound)


def main():
    parser = argparse.ArgumentParser(prog="scripts/replay-chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=None, help="repeats a run; drawn and printed otherwise")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", choices=sorted(chaos.HARMS), help="one kind of harm")
    parser.add_argument("recording", nargs="*", type=pathlib.Path, help="else all in tests/recordings")
    options = parser.parse_args()
    seed = options.seed or processes.draw_seed()
    paths = [path.absolute() for path in options.recording] or replays.all_recordings()
    print("seed %d" % seed)
    done, bad = collections.Counter(), 0
    with processes.Stage() as stage:
        for path in paths:
            _, _, sound = replays.of(path)
            for turn in range(options.rounds):
                for name in [options.only] if options.only else chaos.HARMS:
                    faults = one(path, name, seed + turn, sound, stage.directory)
                    done[name] += 1
                    bad += bool(faults)
                    for fault in faults[:3]:
                        print("%s %s, --seed %d: %s" % (path.stem, name, seed + turn, fault))
    print(" · ".join("%s %d" % each for each in done.items()) + ": %s" % ("%d FAILED" % bad if bad else "all as it must be"))
    return 1 if bad or not done else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""replay-load: makes many instances out of one recording and sends them all to one controller, as
fast as it takes them. Every report and every task must be there in the end, exactly."""
import argparse
import json
import pathlib
import sys

import replays


def main():
    parser = argparse.ArgumentParser(prog="scripts/replay-load", description=__doc__)
    parser.add_argument("recording", nargs="?", type=pathlib.Path, default=replays.all_recordings()[0])
    parser.add_argument("--instances", type=int, default=300, help="at least so many; whole repeats are sent")
    options = parser.parse_args()
    path = options.recording.absolute()
    with replays.private() as stage:
        one = replays.replay(stage, path)
        repeat = max(1, -(-options.instances // max(1, one["instances"])))
        many = replays.replay(stage, path, "--repeat", repeat)
        _, lines = replays.answers(stage)
        replayed = [each for each in stage.json("ls", "--all") if each.get("replayed")]
    executions = replays.parse(lines)
    # The first repeat tells of the tasks that the replay before it has told of already.
    wanted = {"reports": one["reports"] * repeat, "tasks": one["tasks"] * repeat}
    got = {"reports": many["reports"], "tasks": many["tasks"]}
    trees = sorted(shape(each) for each in executions)
    first = [shape(each) for each in replays.parse(replays.of(path)[2])]
    faults = []
    if got != wanted:
        faults.append("sent %s, wanted %s" % (got, wanted))
    if trees != sorted(first * repeat):
        faults.append("%d executions, wanted %d of the same shapes" % (len(trees), len(first) * repeat))
    if len(replayed) != one["instances"] * repeat:
        faults.append("%d instances in `weft ls --all`, wanted %d" % (len(replayed), one["instances"] * repeat))
    if not many["whole"]:
        faults.append("not everything was acknowledged")
    print(json.dumps({"recording": path.stem, "repeats": repeat, "instances": many["instances"],
                      "reports": many["reports"], "tasks": many["tasks"], "seconds": round(many["seconds"], 3),
                      "reports_per_s": round(many["reports"] / max(many["seconds"], 1e-6))}))
    for fault in faults:
        print("replay-load: " + fault, file=sys.stderr)
    return 1 if faults else 0


def shape(execution):
    """What is left of an execution without its ids."""
    place = {each["id"]: n for n, each in enumerate(execution["subtasks"])}
    rows = [(place.get(each["parent"]), each["service"], each["name"], each["hop"], each["start_ns"])
            for each in execution["subtasks"]]
    return json.dumps([execution["name"], execution["kind"], execution["complete"], rows])


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""replay-regress: every recording goes into a controller of its own; what `weft tasks` and
`weft tasks --each --json` say then must be what tests/golden/replay holds, byte for byte."""
import argparse
import difflib
import pathlib
import sys

import replays


def compare(path, write):
    """The number of answers that differ."""
    _, table, executions = replays.of(path)
    differ = 0
    for golden, now in zip(replays.golden_of(path), (table, executions)):
        if write:
            golden.parent.mkdir(parents=True, exist_ok=True)
            golden.write_text(now)
            continue
        before = golden.read_text() if golden.exists() else ""
        if now != before:
            differ += 1
            lines = difflib.unified_diff(before.splitlines(), now.splitlines(), golden.name, "now", n=0, lineterm="")
            for line in list(lines)[:12]:
                print("    " + line[:300])
    print("%-20s %s" % (path.stem, "written" if write else "DIFFERS" if differ else "as before"))
    return differ


def main():
    parser = argparse.ArgumentParser(prog="scripts/replay-regress", description=__doc__)
    parser.add_argument("--write", action="store_true", help="make today's answers the golden ones")
    parser.add_argument("recording", nargs="*", type=pathlib.Path, help="else all in tests/recordings")
    options = parser.parse_args()
    paths = [path.absolute() for path in options.recording] or replays.all_recordings()
    differ = sum(compare(path, options.write) for path in paths)
    return 1 if differ or not paths else 0


if __name__ == "__main__":
    sys.exit(main())

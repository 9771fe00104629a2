#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What taking in spans costs beside a tracing backend: the CPU of a weft controller that takes in,
journals, correlates and stores the reports of random executions, against that of Jaeger all-in-one
(in memory) for the same executions as spans, sent to it by OTLP. On the same cores, one after the other.
"""
import os
import pathlib
import random
import re
import signal
import statistics
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support")]
import jaeger  # noqa: E402
import processes  # noqa: E402
from forests import Forest  # noqa: E402

TREES, REPEAT = 500, 40
ROUNDS = 5
OURS = 3  # times a round: ours lasts a twentieth of theirs, and a neighbour's moment is a large part of it
BATCH = 690  # reports: what 64 KiB hold, as a sidecar sends them when there are many
MUST = 20.0


def cpu_of(pid):
    """Seconds of all threads, user and system."""
    fields = pathlib.Path("/proc/%d/stat" % pid).read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def saved(server):
    """Spans that Jaeger says are in its store."""
    with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % server.ports["admin.http"], timeout=10) as answer:
        text = answer.read().decode()
    return sum(float(n) for n in re.findall(r"^jaeger_collector_spans_saved_by_svc_total\{.*\} (\S+)$", text, re.M))


def thread_seconds(pid):
    """As cpu_of, for a span shorter than its ticks."""
    threads = pathlib.Path("/proc/%d/task" % pid).glob("*/schedstat")
    return sum(int(thread.read_text("ascii").split()[0]) for thread in threads) / 1e9


def rest(seconds):
    """What ran before is on the disk and at its end: its writing back took a fifth of the one behind it."""
    os.sync()
    time.sleep(seconds)


def weft_seconds(stage, path):
    """From the first message until all is in the store and it has ended; its start is not counted."""
    controller = stage.controller()
    rest(0.5)
    before = thread_seconds(controller.pid)
    line, = stage.json("replay", path, "--speed", "max", "--repeat", REPEAT, timeout=300)
    assert line["whole"], line
    controller.send_signal(signal.SIGTERM)
    _, status, usage = os.wait4(controller.pid, 0)
    controller.returncode = os.waitstatus_to_exitcode(status)
    assert controller.returncode == 0
    return usage.ru_utime + usage.ru_stime - before, line["reports"]


def jaeger_seconds(stage, spans):
    """From the first message until the last span is in its memory; its start is not counted."""
    server = jaeger.Jaeger(stage)
    rest(2)  # it is busy for some time at its start
    before = cpu_of(server.process.pid)
    controller = stage.controller()
    stage.weft("export", "--format", "otlp", "--to", server.url, "all", timeout=600)
    processes.wait_until(lambda: saved(server) >= spans, 300, "all spans in Jaeger", 0.5)
    used = cpu_of(server.process.pid) - before
    assert saved(server) == spans, "no more and no less"
    server.process.kill()
    controller.send_signal(signal.SIGTERM)
    controller.wait()
    return used


def round_of(number):
    """Both for the same executions: seconds of ours, reports, seconds of theirs, spans."""
    with processes.Stage(random.Random(number)) as stage:
        path = stage.directory / "forest.weftr"
        forest = Forest(random.Random(1), TREES)
        forest.write(path, BATCH)
        spans = len(forest.spans) * REPEAT
        ours = [weft_seconds(stage, path)]
        for _ in range(1, OURS):
            with processes.Stage(random.Random(number)) as other:
                ours.append(weft_seconds(other, path))
        reports, = {taken for _, taken in ours}
        return [seconds for seconds, _ in ours], reports, jaeger_seconds(stage, spans), spans


def main():
    if jaeger.state() != 0:
        print("beside Jaeger: missing: scripts/jaeger builds it")
        return 0
    os.environ["no_proxy"] = "127.0.0.1"
    rounds = [round_of(number) for number in range(ROUNDS)]
    ours, theirs = [seconds for one in rounds for seconds in one[0]], [one[2] for one in rounds]
    _, reports, _, spans = rounds[0]
    ratio = statistics.median(theirs) / statistics.median(ours)
    beside = "%d spans: %.2f s of CPU for %d reports, Jaeger %.2f s, medians; %.2f to %.2f and %.2f to %.2f s; load %.1f" % (
        spans, statistics.median(ours), reports, statistics.median(theirs), min(ours), max(ours), min(theirs), max(theirs),
        os.getloadavg()[0])
    print("%-46s %10.2f %-8s >= %8.2f  %s  %s" % (
        "spans per CPU second / Jaeger all-in-one", ratio, "x", MUST, "ok  " if ratio >= MUST else "FAIL", beside))
    return ratio < MUST


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    sys.exit(main())

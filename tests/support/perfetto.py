# SPDX-License-Identifier: Apache-2.0
"""Checks a trace against what the Trace Event Format and Perfetto's reader of it ask for. Perfetto's own trace
processor would be better still, but no package registry has it: the `perfetto` of PyPI fetches the program from
a site of its own at its first use, and tests reach registries only."""
import collections
import decimal
import json

SINGLE = {"X": {"name", "cat", "ts", "dur"}, "s": {"name", "cat", "ts", "id"}, "f": {"name", "cat", "ts", "id", "bp"},
          "M": {"name", "args"}}
METADATA = {"process_name": "name", "process_labels": "labels", "thread_name": "name", "trace_name": "name"}


def nested_or_apart(events):
    """On one track, in file order for equal times, no event may cross the end of another."""
    stack = []
    for event in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
        while stack and stack[-1] <= event["ts"]:
            stack.pop()
        end = event["ts"] + event["dur"]
        assert not stack or end <= stack[-1], "%s crosses what it begins in" % event
        stack.append(end)


def load(path):
    """The trace, times as exact numbers; AssertionError says what is wrong with it."""
    with open(path, encoding="utf-8") as file:
        trace = json.load(file, parse_float=decimal.Decimal)
    assert isinstance(trace["traceEvents"], list) and trace["displayTimeUnit"] in ("ms", "ns")
    tracks, arrows, named = collections.defaultdict(list), collections.defaultdict(list), set()
    for event in trace["traceEvents"]:
        assert event["ph"] in SINGLE and SINGLE[event["ph"]] <= event.keys(), event
        assert type(event["pid"]) is int and type(event["tid"]) is int
        place = event["pid"], event["tid"]
        for key in ("ts", "dur"):
            if key in event:
                assert isinstance(event[key], decimal.Decimal) and event[key] >= 0 and event[key] * 1000 % 1 == 0, event
        if event["ph"] == "M":
            assert isinstance(event["args"][METADATA[event["name"]]], str), event
            named.add((event["name"], *place))
        elif event["ph"] == "X":
            assert isinstance(event["name"], str) and isinstance(event["args"], dict)
            tracks[place].append(event)
        else:
            assert type(event["id"]) is int
            arrows[event["id"]].append(event)
    for place, events in tracks.items():
        assert ("process_name", place[0], 0) in named and ("thread_name", *place) in named, place
        nested_or_apart(events)
    for number, pair in arrows.items():
        assert [event["ph"] for event in pair] == ["s", "f"] and pair[1]["bp"] == "e", (number, pair)
        for event in pair:  # each end lies in a slice of its track
            assert any(x["ts"] <= event["ts"] <= x["ts"] + x["dur"] for x in tracks[event["pid"], event["tid"]]), event
    return trace


def slices(trace):
    return [event for event in trace["traceEvents"] if event["ph"] == "X"]


def arrows(trace):
    return [event for event in trace["traceEvents"] if event["ph"] == "s"]

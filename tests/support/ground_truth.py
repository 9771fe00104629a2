# SPDX-License-Identifier: Apache-2.0
"""Compares the trees that weft printed with what the applications themselves logged.

The applications know nothing of weft. Each logs, per request that it handled: the
request's number, its place in the call tree ("0" the first service, "0.2" its third
call, …), service, method, route, status, times, pid, and the `traceparent` that arrived.
That header ties the two sides together: (task id, request id) of every call is known from
the bytes that the receiving application read, so each subtask that weft reports is held
against the one handled request it must be, and its parent against that request's caller.

wrong       weft says something that is not so: a node, service, name, status, time or
            parent that the log does not have, one task for two requests
incomplete  weft does not say something that is so: a missing node, an unknown parent, a
            one-sided request, an open answer

    ground_truth.py --logs FILE… --executions FILE     prints the counts as JSON
"""
import argparse
import collections
import dataclasses
import json
import re
import sys

CLOCK_SLACK_NS = 20_000_000  # the log's wall clock against boot time plus anchor
TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}\Z")
IDENTIFIER = re.compile(r"[0-9]+\Z|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")


@dataclasses.dataclass(frozen=True)
class Entry:
    """One handled request, from a log line."""

    n: int
    at: str
    service: str
    method: str
    route: str
    status: int
    start_ns: int
    end_ns: int
    pid: int
    traceparent: str | None

    @property
    def parent_at(self):
        return self.at.rpartition(".")[0] or None

    @property
    def name(self):
        segments = ["{id}" if IDENTIFIER.match(segment) else segment for segment in self.route.split("/")]
        return "%s %s" % (self.method, "/".join(segments))

    @property
    def carried(self):
        """(task id, request id) that arrived, or None."""
        match = TRACEPARENT.match(self.traceparent or "")
        return match.groups() if match else None


def read_logs(paths):
    entries = []
    for path in paths:
        with open(path, encoding="utf-8") as lines:
            entries += [Entry(**json.loads(line)) for line in lines]
    return entries


@dataclasses.dataclass
class Result:
    requests: int = 0
    tasks: int = 0
    complete: int = 0
    wrong: int = 0
    orphans: int = 0
    proven_hops: int = 0
    expected_hops: int = 0
    notes: list = dataclasses.field(default_factory=list)  # one line per deviation

    def exact(self):
        return (
            self.tasks == self.complete == self.requests
            and self.wrong == self.orphans == 0
            and self.proven_hops == self.expected_hops
            and not self.notes
        )


class Truth:
    def __init__(self, entries):
        self.requests = collections.defaultdict(dict)  # n -> at -> entry
        self.carried = {}  # (task, request) -> entry
        self.notes = []
        for entry in entries:
            if entry.at in self.requests[entry.n]:
                self.notes.append("request %d at %s was handled twice" % (entry.n, entry.at))
            self.requests[entry.n][entry.at] = entry
            if entry.carried:
                if entry.carried in self.carried:
                    self.notes.append("task %s: request id %s arrived twice" % entry.carried)
                self.carried[entry.carried] = entry
        self.claims = {}  # n -> task ids that its calls carried
        owners = collections.defaultdict(set)  # task id -> numbers
        for number, places in self.requests.items():
            calls = [entry for at, entry in places.items() if at != "0"]
            self.claims[number] = {entry.carried[0] if entry.carried else None for entry in calls}
            for task in self.claims[number]:
                owners[task].add(number)
        self.owner = {task: min(numbers) for task, numbers in owners.items() if task and len(numbers) == 1}
        self.shared = {task for task, numbers in owners.items() if task and len(numbers) > 1}

    def expected_hops(self):
        return sum(len(places) - 1 for places in self.requests.values())

    def entry_of(self, task, subtask):
        """The handled request that this subtask must be, or None."""
        if subtask["request"] is None:
            return self.requests[self.owner[task]].get("0") if task in self.owner else None
        return self.carried.get((task, subtask["request"]))


def compare(entries, executions):
    truth = Truth(entries)
    result = Result(requests=len(truth.requests), expected_hops=truth.expected_hops(), notes=truth.notes)
    exact = set()  # numbers whose tree is right and whole
    seen = set()
    for execution in executions:
        task = execution["task"]
        wrong, incomplete = _check_tree(truth, execution)
        if task in truth.shared:
            wrong.append("stands for several requests")
        if task in seen:
            wrong.append("is reported twice")
        seen.add(task)
        if execution["kind"] == "orphan":
            result.orphans += 1
            incomplete.append("is an orphan")
        else:
            result.tasks += 1
            result.proven_hops += sum(subtask["hop"] == "proven" for subtask in execution["subtasks"])
        result.wrong += bool(wrong)
        number = truth.owner.get(task)
        if number is None and not wrong:
            incomplete.append("no request of the log carried it")
        if number is not None and not wrong and not incomplete:
            exact.add(number)
        result.notes += ["task %s: %s" % (task, text) for text in wrong + incomplete]
    for number, claims in sorted(truth.claims.items()):
        if claims == {None} or len(claims) != 1:
            result.notes.append("request %d: its calls carried %d task ids" % (number, len(claims - {None})))
            exact.discard(number)
        elif not claims <= seen:
            result.notes.append("request %d: its task %s is not reported" % (number, *claims))
    result.complete = len(exact)
    return result


def _check_tree(truth, execution):
    """What is wrong and what is incomplete in one tree, as two lists of lines."""
    wrong, incomplete = [], []
    task, by_place, by_id = execution["task"], {}, {}
    for subtask in execution["subtasks"]:
        by_id[subtask["id"]] = subtask
        if subtask["hop"] == "embed_only":
            incomplete.append("%s in %s was sent, not captured" % (subtask["name"], subtask["service"]))
            continue
        entry = truth.entry_of(task, subtask)
        if entry is None:
            if subtask["request"] is not None or task in truth.owner:
                wrong.append("%s in %s was never handled" % (subtask["name"], subtask["service"]))
            continue
        if entry.at in by_place:
            wrong.append("%s at %s is there twice" % (entry.name, entry.at))
        by_place[entry.at] = subtask
        wrong += _check_subtask(entry, subtask)
        if subtask["hop"] != ("root" if entry.at == "0" else "proven"):
            incomplete.append("%s at %s is %s" % (entry.name, entry.at, subtask["hop"]))
        if subtask["error"] or subtask["status"] is None:
            incomplete.append("%s at %s: error %s" % (entry.name, entry.at, subtask["error"]))
    if not execution["complete"]:
        incomplete.append("calls itself incomplete")
    if task in truth.owner:
        places = truth.requests[truth.owner[task]]
        incomplete += ["%s at %s is missing" % (places[at].name, at) for at in places if at not in by_place]
        if "0" in by_place and execution["name"] != places["0"].name:
            wrong.append("is called %s, not %s" % (execution["name"], places["0"].name))
    for subtask in by_id.values():
        more_wrong, more_incomplete = _check_parent(truth, task, subtask, by_id)
        wrong += more_wrong
        incomplete += more_incomplete
    proven = sum(subtask["hop"] == "proven" for subtask in by_id.values())
    if execution["hops"]["proven"] != proven:
        wrong.append("counts %d proven hops, shows %d" % (execution["hops"]["proven"], proven))
    return wrong, incomplete


def _check_subtask(entry, subtask):
    wrong = []
    for what in ("service", "name", "pid", "status"):
        said, true = subtask[what], getattr(entry, what)
        # An answer that weft has not seen is incomplete, not wrong.
        if said != true and not (what == "status" and said is None):
            wrong.append("%s at %s: %s is %s, not %s" % (entry.name, entry.at, what, said, true))
    start, end = subtask["start_ns"], subtask["start_ns"] + subtask["duration_ns"]
    if start > entry.start_ns + CLOCK_SLACK_NS or (subtask["status"] and end < entry.end_ns - CLOCK_SLACK_NS):
        wrong.append("%s at %s: its time does not contain that of the log" % (entry.name, entry.at))
    return wrong


def _check_parent(truth, task, subtask, by_id):
    entry = truth.entry_of(task, subtask)
    parent = by_id.get(subtask["parent"]) if subtask["parent"] is not None else None
    if subtask["parent"] is not None and parent is None:
        return ["%s has a parent that is not in the tree" % subtask["name"]], []
    if entry is None:
        return [], []
    if parent is None:
        return [], [] if entry.at == "0" else ["%s at %s: parent unknown" % (entry.name, entry.at)]
    caller = truth.entry_of(task, parent)
    if caller is None or (caller.n, caller.at) != (entry.n, entry.parent_at):
        return ["%s at %s hangs under %s in %s" % (entry.name, entry.at, parent["name"], parent["service"])], []
    return [], []


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--logs", nargs="+", required=True)
    parser.add_argument("--executions", required=True, help="what `weft tasks --each --json` printed")
    options = parser.parse_args()
    with open(options.executions, encoding="utf-8") as lines:
        executions = [json.loads(line) for line in lines]
    result = compare(read_logs(options.logs), executions)
    for note in result.notes:
        print(note, file=sys.stderr)
    print(json.dumps({key: value for key, value in dataclasses.asdict(result).items() if key != "notes"}))
    return 0 if result.exact() else 1


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""The comparison itself, on trees and logs made by hand: it must notice everything."""
import copy

import ground_truth
import pytest

TASK, OTHER = "a" * 32, "b" * 32
MS = 1_000_000


def entry(n, at, service, route, begin, end, carried=None):
    traceparent = "00-%s-%s-01" % carried if carried else None
    pid = {"front": 10, "orders": 20, "pricing": 30}[service]
    return ground_truth.Entry(n, at, service, "GET", route, 200, begin * MS, end * MS, pid, traceparent)


def subtask(own, parent, request, service, name, begin, end, hop="proven"):
    return {
        "id": own * 16,
        "parent": parent and parent * 16,
        "request": request and request * 16,
        "service": service,
        "pid": {"front": 10, "orders": 20, "pricing": 30}[service],
        "name": name,
        "status": 200,
        "error": None,
        "start_ns": begin * MS,
        "duration_ns": (end - begin) * MS,
        "hop": hop,
    }


def log():
    """front calls orders twice; the second orders calls pricing."""
    return [
        entry(1, "0", "front", "/checkout", 1000, 1500),
        entry(1, "0.0", "orders", "/orders/17", 1100, 1200, (TASK, "1" * 16)),
        entry(1, "0.1", "orders", "/orders/17", 1200, 1400, (TASK, "2" * 16)),
        entry(1, "0.1.0", "pricing", "/quote/0f8fad5b-d9cb-469f-a165-70867728950e", 1250, 1300, (TASK, "3" * 16)),
    ]


def tree():
    return {
        "task": TASK,
        "name": "GET /checkout",
        "kind": "task",
        "complete": True,
        "hops": {"proven": 3, "embed_only": 0, "capture_only": 0, "opaque": 0},
        "subtasks": [
            subtask("a", None, None, "front", "GET /checkout", 999, 1501, "root"),
            subtask("b", "a", "1", "orders", "GET /orders/{id}", 1099, 1201),
            subtask("c", "a", "2", "orders", "GET /orders/{id}", 1199, 1401),
            subtask("d", "c", "3", "pricing", "GET /quote/{id}", 1249, 1301),
        ],
    }


def counts(result):
    return result.tasks, result.complete, result.wrong, result.orphans, result.proven_hops, result.expected_hops


def test_exact():
    result = ground_truth.compare(log(), [tree()])
    assert counts(result) == (1, 1, 0, 0, 3, 3)
    assert result.exact()


# Which subtask, what is put there, and whether that is wrong (1) or merely incomplete (0).
@pytest.mark.parametrize(
    "index, change, wrong",
    [
        (3, {"parent": "b" * 16}, 1),  # the other call of the same route
        (3, {"parent": "a" * 16}, 1),
        (3, {"parent": "e" * 16}, 1),  # nobody
        (3, {"parent": None}, 0),
        (1, {"service": "pricing"}, 1),
        (1, {"name": "GET /orders/17"}, 1),
        (1, {"name": "POST /orders/{id}"}, 1),
        (1, {"status": 404}, 1),
        (1, {"status": None, "error": "open"}, 0),
        (1, {"pid": 30}, 1),
        (1, {"request": "9" * 16}, 1),  # a request that nobody handled
        (1, {"request": "2" * 16}, 1),  # the same request twice
        (1, {"hop": "capture_only"}, 1),  # hops.proven says otherwise
        (2, {"start_ns": 1300 * MS}, 1),
        (2, {"duration_ns": 100 * MS}, 1),
        (0, {"name": "GET /other"}, 1),
        (0, {"hop": "capture_only"}, 0),
    ],
)
def test_a_changed_subtask_is_noticed(index, change, wrong):
    changed = tree()
    changed["subtasks"][index].update(change)
    result = ground_truth.compare(log(), [changed])
    assert (result.complete, result.wrong) == (0, wrong)
    assert not result.exact()


def test_a_missing_subtask_is_incomplete():
    changed = tree()
    del changed["subtasks"][3]
    changed["hops"]["proven"] = 2
    assert counts(ground_truth.compare(log(), [changed])) == (1, 0, 0, 0, 2, 3)


def test_an_added_subtask_is_wrong():
    changed = tree()
    changed["subtasks"].append(subtask("e", "a", "4", "pricing", "GET /quote/{id}", 1420, 1430))
    changed["hops"]["proven"] = 4
    assert counts(ground_truth.compare(log(), [changed])) == (1, 0, 1, 0, 4, 3)


def test_an_uncaptured_request_is_incomplete():
    changed = tree()
    changed["subtasks"][1].update(hop="embed_only", status=None)
    changed["hops"].update(proven=2, embed_only=1)
    assert counts(ground_truth.compare(log(), [changed])) == (1, 0, 0, 0, 2, 3)


def test_a_task_that_calls_itself_incomplete_is_not_counted():
    changed = dict(tree(), complete=False)
    assert counts(ground_truth.compare(log(), [changed])) == (1, 0, 0, 0, 3, 3)


def test_a_task_reported_twice_is_wrong():
    assert counts(ground_truth.compare(log(), [tree(), tree()])) == (2, 1, 1, 0, 6, 3)


def test_an_unreported_task_is_incomplete():
    result = ground_truth.compare(log(), [])
    assert counts(result) == (0, 0, 0, 0, 0, 3)
    assert not result.exact()


def test_an_orphan_is_counted_and_never_a_task():
    orphan = tree()
    orphan["kind"] = "orphan"
    assert counts(ground_truth.compare(log(), [orphan])) == (0, 0, 0, 1, 0, 3)


def test_a_task_of_no_request_is_noticed():
    extra = tree()
    extra.update(task=OTHER, subtasks=extra["subtasks"][:1], hops=dict(extra["hops"], proven=0))
    result = ground_truth.compare(log(), [tree(), extra])
    assert counts(result) == (2, 1, 0, 0, 3, 3)
    assert not result.exact()


def test_a_header_that_did_not_arrive_is_noticed():
    entries = log()
    entries[1] = ground_truth.Entry(**{**entries[1].__dict__, "traceparent": None})
    result = ground_truth.compare(entries, [tree()])
    assert (result.complete, result.exact()) == (0, False)


def test_two_requests_in_one_task_are_wrong():
    second = [
        entry(2, "0", "front", "/checkout", 1000, 1500),
        entry(2, "0.0", "orders", "/orders/18", 1100, 1200, (TASK, "5" * 16)),
    ]
    result = ground_truth.compare(log() + second, [copy.deepcopy(tree())])
    assert (result.complete, result.wrong) == (0, 1)

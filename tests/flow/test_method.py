# SPDX-License-Identifier: Apache-2.0
"""The method, clause by clause, on what really crossed between real VMs.

A subscriber stands beside the instances, a tap before the controller; services log
the headers that reached them. Nothing here asks weft whether weft is right, except
for the last clause, whose answer is compared with all of the above.
"""
import functools
import operator
import re

import processes
import pytest
from fixtures_chain import CAPTURE, EMBED, Meddler, chain, executions, instruct, path_through, send, settle
from subscriber import ORPHAN_FLAG, ROOT_FLAG, STATE

ROOT_ACTION, EMBED_ACTION, CAPTURE_ACTION = 1, 2, 4
NAMES = "front", "orders", "pricing"
KINDS = [("http", "jvm", "http"), ("jvm", "flask", "jvm")]


def told(running, service, wanted):
    """Clauses 1 and 2: an instruction for `service` with the actions `wanted` crossed the
    instruction bus. Returns the numbers that ask for them."""
    def found():
        return {number: i["actions"] for number, i in running.subscriber.instructions().items()
                if f"service={service}" in i["selectors"]}
    processes.wait_equal(lambda: functools.reduce(operator.or_, found().values(), 0), wanted, 3, f"actions of {service}")
    return set(found())


def follow(running, number, seconds=3 * processes.PATIENCE):
    """Clauses 3 to 7 for the request that services logged as `number`; AssertionError names
    the clause that does not hold. Each copy may take so many seconds to come."""
    received, = [entry["traceparent"] for entry in running.logged("orders", number)]
    assert received, "clause 3: the second VM received no task id"
    task, request = re.fullmatch(r"00-([0-9a-f]{32})-([0-9a-f]{16})-01", received).groups()

    def copy(service, kind):
        return running.tap.wait(lambda m: any(r["task"] == task for r in running.reports(service, kind)), seconds) and \
            running.reports(service, kind, task)

    first = copy("front", EMBED)
    assert [f"{r['request']:016x}" for r in first] == [request], "clauses 3, 4: the first copy is of what was received"
    assert not first[0]["flags"] & ORPHAN_FLAG
    second = copy("orders", CAPTURE)
    assert [f"{r['request']:016x}" for r in second] == [request], "clauses 5, 6: the second copy is of the same request"
    top, = copy("front", CAPTURE)
    assert top["flags"] & ROOT_FLAG and top["subtask"] == first[0]["subtask"], "the first VM's own subtask sent it"

    def whole(all_):
        return any(e["task"] == task and e["hops"]["proven"] == 2 and len(e["subtasks"]) == 3 and e["complete"] for e in all_)
    found = executions(running.stage, whole)
    execution, = [e for e in found if e["task"] == task]
    assert execution["kind"] == "task"
    by_service = {s["service"]: s for s in execution["subtasks"]}
    assert sorted(by_service) == sorted(NAMES) and len(execution["subtasks"]) == 3
    front, orders, pricing = (by_service[name] for name in NAMES)
    assert orders["id"] == f"{second[0]['subtask']:016x}" and orders["request"] == request
    assert front["parent"] is None and orders["parent"] == front["id"], "clause 7: the subtask that called it"
    assert pricing["parent"] == orders["id"], "clause 7: the third subtask, which it called"
    assert (front["hop"], orders["hop"], pricing["hop"]) == ("root", "proven", "proven")
    for name, subtask in by_service.items():
        entry, = running.logged(name, number)
        assert subtask["pid"] == entry["pid"] and subtask["name"] == f"GET /{name}" and subtask["status"] == 200
        assert subtask["start_ns"] <= entry["start_ns"] and \
            entry["end_ns"] <= subtask["start_ns"] + subtask["duration_ns"] + 50_000_000, "times are the service's"
    return task


def instruct_all(stage):
    """Each VM is told something of its own."""
    return (instruct(stage, "--root", "service=front", "--embed", "service=front")
            + instruct(stage, "--embed", "service=orders", "--capture", "service=orders")
            + instruct(stage, "--capture", "service=pricing"))


@pytest.mark.parametrize("kinds", KINDS, ids="-".join)
def test_one_task_across_three_vms(stage, kinds):
    with chain(stage, kinds, NAMES) as running:
        instruct_all(stage)
        first = told(running, "front", ROOT_ACTION | EMBED_ACTION)
        second = told(running, "orders", EMBED_ACTION | CAPTURE_ACTION)
        assert not first & second, "clause 2: a second, different instruction"
        tasks = {follow(running, send(running.apps["front"], path_through(*NAMES))) for _ in range(5)}
        assert len(tasks) == 5, "each request is a task of its own"
        assert [t for t, m in running.subscriber.seen if m["kind"] == STATE and t == "all"], "broadcast, not told apart"


def test_a_dropped_header_is_noticed(stage):
    """The checker's own control: where propagation is broken, `follow` must fail."""
    meddler = Meddler(lambda data: re.sub(rb"traceparent: [^\r]*\r\n", b"", data))
    with chain(stage, KINDS[0], NAMES, meddler) as running:
        instruct_all(stage)
        number = send(running.apps["front"], path_through(*NAMES))
        with pytest.raises(AssertionError, match="received no task id"):
            follow(running, number)
        meddler.close()


def test_a_changed_task_id_is_noticed(stage):
    meddler = Meddler(lambda data: re.sub(rb"traceparent: 00-[0-9a-f]{4}", b"traceparent: 00-abcd", data))
    with chain(stage, KINDS[0], NAMES, meddler) as running:
        instruct_all(stage)
        number = send(running.apps["front"], path_through(*NAMES))
        with pytest.raises(AssertionError):
            follow(running, number, 3)
        meddler.close()


def test_an_instance_told_nothing_does_nothing(stage):
    """`orders` is under weft, but no instruction is for it."""
    with chain(stage, KINDS[0], NAMES) as running:
        instruct(stage, "--root", "service=front", "--embed", "service=front")
        instruct(stage, "--capture", "service=pricing")
        numbers = [send(running.apps["front"], path_through(*NAMES)) for _ in range(5)]
        running.tap.wait(lambda m: len(running.reports("front", EMBED)) == 5)
        settle()
        assert all(running.logged("orders", n)[0]["traceparent"] for n in numbers), "front embeds all the same"
        assert not any(running.logged("pricing", n)[0]["traceparent"] for n in numbers), "orders embeds nothing"
        assert not [r for r in running.tap.reports() if r["instance"] == running.uuid("orders")]


def test_embed_without_root_starts_no_task(stage):
    with chain(stage, KINDS[0], NAMES) as running:
        instruct(stage, "--embed", "service=front", "--capture", "service=orders", "--capture", "service=pricing")
        for _ in range(5):
            send(running.apps["front"], path_through(*NAMES))
        settle(1)
        assert not [e for e in executions(stage, lambda all_: True) if e["kind"] == "task"]
        assert not [r for r in running.tap.reports() if r["flags"] & ROOT_FLAG]


def test_a_context_from_outside_is_continued(stage):
    """A caller beyond weft's reach that brings a traceparent of its own is the top of the task."""
    with chain(stage, KINDS[0], NAMES) as running:
        instruct_all(stage)
        instruct(stage, "--capture", "service=front")
        theirs = "0af7651916cd43dd8448eb211c80319c"
        number = send(running.apps["front"], path_through(*NAMES), {"traceparent": f"00-{theirs}-b7ad6b7169203331-01"})
        assert running.logged("front", number)[0]["traceparent"] == f"00-{theirs}-b7ad6b7169203331-01", "left as it was"
        assert running.logged("orders", number)[0]["traceparent"].startswith(f"00-{theirs}-")
        def whole(all_):
            return any(e["task"] == theirs and e["hops"]["proven"] == 2 and len(e["subtasks"]) == 3 and
                       e["subtasks"][0]["service"] == "front" for e in all_)
        execution, = [e for e in executions(stage, whole) if e["task"] == theirs]
        assert [s["hop"] for s in execution["subtasks"]] == ["capture_only", "proven", "proven"]

# SPDX-License-Identifier: Apache-2.0
"""More tasks than a controller may hold, from two instances that each have a part in every task:
whole tasks are shed, the same ones for both, and counted to the report."""
import sys
import time

import processes
import pytest
from processes import wait_until
from test_faults import build  # noqa: F401  pylint: disable=unused-import

sys.path.insert(0, str(processes.ROOT / "tests" / "fault"))
import harness  # noqa: E402

TASKS_MAX = 2000  # about 1,900 begin a second, each is in memory for two
SHED = harness.SHED
SECONDS = 8
LEAD_MAX = 200  # events: the second copy of a task comes while it is open


@pytest.fixture
def field(rng, build):  # noqa: F811
    value = harness.Harness(harness.Stage(rng, build), rng, vms=1, per_ms=0, options=("--tasks-max", str(TASKS_MAX)))
    value.add_vm(root=value.vms[0])
    value.recover()
    yield value
    value.close()


def work(vms):
    """Both write of the same tasks, at about the same time."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        begun = [vm.counts()[0] for vm in vms]
        for vm, mine in zip(vms, begun):
            vm.rate(0 if mine > min(begun) + LEAD_MAX else 1)
        time.sleep(0.01)
    for vm in vms:
        vm.rate(0)


def written_by(field, vm):
    """The tasks of which the journal has a copy of this VM's."""
    return {task.hex() for batch in field.kept.values() if batch.start == vm.memory.start() for task in batch.tasks}


def stored_by(field):
    """{instance: tasks of which the store has its copy}"""
    found = {}
    for task in field.stage.json("tasks", "--each"):
        for subtask in task["subtasks"]:
            found.setdefault(subtask["instance"], set()).add(task["task"])
    return found


def settled(field, wrote):
    """The instances and the tasks that the store has of each, once the account says so many, and of all that they wrote."""
    def look():
        listed = {one["service"]: one for one in field.stage.json("ls")}
        stored, both = stored_by(field), [listed[vm.name] for vm in field.vms]
        got = [stored.get(one["instance"], set()) for one in both]
        done = [len(tasks) for tasks in got] == [one["stored"] for one in both]
        return (both, got) if done and all(one["written"] == len(w) for one, w in zip(both, wrote)) else None
    return wait_until(look, 20, "everything that was kept in the store", 0.3)


def test_what_was_shed_stays_counted(field):
    """Its controller dies while it sheds: what it had shed is not taken for stored by the next one."""
    work(field.vms)
    field.controller.kill()
    field.controller.wait()
    assert field.quiet() == []
    field.collect()
    wrote = [written_by(field, vm) for vm in field.vms]
    listed, got = settled(field, wrote)
    for n in range(2):
        assert listed[n]["losses"] == {**dict.fromkeys(listed[n]["losses"], 0), SHED: len(wrote[n] - got[n])}
        assert len(wrote[n] - got[n]) > 1000, "some were shed"


def test_whole_tasks_are_shed_and_counted(field):
    work(field.vms)
    assert field.quiet() == []
    field.collect()
    wrote = [written_by(field, vm) for vm in field.vms]
    assert [len(tasks) for tasks in wrote] == [vm.counts()[1] for vm in field.vms], "all of it is in the journal"

    listed, got = settled(field, wrote)
    shed = [wrote[n] - got[n] for n in range(2)]
    for n in range(2):
        assert listed[n]["losses"] == {**dict.fromkeys(listed[n]["losses"], 0), SHED: len(shed[n])}
        assert len(shed[n]) > 1000 and len(got[n]) > TASKS_MAX / 2, "some of both"
    of_both = wrote[0] & wrote[1]
    assert len(of_both) > 0.9 * len(wrote[0])
    assert of_both & shed[0] == of_both & shed[1], "a task is shed whole or not at all"
    assert SHED in field.ask("ls", "--losses").stdout
    assert SHED in field.ask("tasks").stdout
    log = field.stage.directory / "controller.out"
    assert log.read_text().count("overloaded: tasks are shed, whole ones") == 1
    wait_until(lambda: "no longer overloaded: every task is taken again" in log.read_text(), 40, "the end of it", 0.2)

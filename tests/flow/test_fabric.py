# SPDX-License-Identifier: Apache-2.0
"""The bus between instances and controller under failures: it loses nothing that it accepted, says
what it dropped, and no VM notices."""
import json
import os
import pathlib
import signal
import statistics
import time

import processes
import pytest
from fixtures_chain import instruct
from fixtures_load import Load
from fixtures_probe import memory_path, sidecar_pid
from scenario import plan

NODE = plan.parse("orders~G~/orders~s1~200~0~100")


def under_load(stage, name="orders"):
    """An application under weft that starts and captures tasks, patient with its controller."""
    app = stage.app("http", name, run=True)
    stage.wait_instances(1)
    instruct(stage, "--on", f"service={name}", "--lease", "60s")
    return app


def accounted(stage, count=1, seconds=20):
    """The instances, once everything that they wrote is stored or told as lost."""
    def settled():
        found = stage.json("ls", "--all")
        closed = [i for i in found if i["written"] > 0 and i["written"] == i["stored"] + sum(i["losses"].values())]
        return closed if len(closed) == count else None
    return processes.wait_until(settled, seconds, "accounts that add up", 0.2)


def next_controller(stage):
    """Starts one beside no other: a verb that finds none would start one itself."""
    process = stage.controller(wait=False)
    lock = pathlib.Path(stage.address.removeprefix("ipc://")) / "lock"
    processes.wait_until(lambda: lock.exists() and lock.read_text().strip() == str(process.pid), 10, "its lock")
    processes.wait_until(lambda: stage.weft("ls", check=False).returncode == 0, 10, "its answer")
    return process


def latencies(load, since_ns, until_ns):
    return sorted(end - start for start, end in list(load.done) if since_ns <= start and end <= until_ns)


def while_it_is_stopped(controller, load):
    """The load's latencies in four seconds before, and in ten during."""
    began = time.time_ns()
    time.sleep(4)
    os.kill(controller.pid, signal.SIGSTOP)
    stopped = time.time_ns()
    time.sleep(10)
    resumed = time.time_ns()
    os.kill(controller.pid, signal.SIGCONT)
    load.goes_on()
    return latencies(load, began, stopped), latencies(load, stopped, resumed)


def costs_nothing(before, during):
    medians = statistics.median(before), statistics.median(during)
    slowest = before[-len(before) // 100], during[-len(during) // 100]
    print("%d and %d requests, median %.2f and %.2f ms, 99 %% %.2f and %.2f ms" %
          (len(before), len(during), *(ns / 1e6 for ns in medians + slowest)))
    return len(during) > len(before) and medians[1] < 1.5 * medians[0] + 1_000_000 and slowest[1] < 3 * slowest[0] + 5_000_000


def test_a_stopped_controller_costs_a_vm_nothing(stage):
    """Who shares the machine may begin or end in the middle of a measurement: the best of up to three counts."""
    controller = stage.controller()
    app = under_load(stage)
    with Load(app, NODE, 2) as load:
        for _ in range(3):
            before, during = while_it_is_stopped(controller, load)
            if costs_nothing(before, during):
                break
        else:
            pytest.fail("the application is slower without its controller")
    instance = accounted(stage)[0]
    assert instance["written"] >= len(during), "it went on reporting"
    assert instance["losses"]["spool full"] == 0 or instance["losses"]["ring full"] == 0, "full for one cause, told once"


def test_a_killed_controller_loses_no_report_that_it_took(stage, rng):
    controller = stage.controller()
    app = under_load(stage)
    with Load(app, NODE, 2) as load:
        for _ in range(4):
            pause = rng.uniform(0.2, 2.5)
            print(f"killed after {pause:.3f} s")
            time.sleep(pause)
            controller.kill()
            controller.wait()
            controller = next_controller(stage)
            stage.wait_instances(1)
            instruct(stage, "--on", "service=orders", "--lease", "60s")
        load.goes_on()

    def told():
        instance = accounted(stage)[0]
        tasks = [task["task"] for task in stage.json("tasks", "--each")]
        assert len(tasks) == len(set(tasks)), "none twice"
        assert instance["losses"]["spool full"] == 0
        # The last batch may arrive between the two questions.
        return len(tasks) == instance["stored"]

    processes.wait_until(told, 10, "one root capture a request: each is one task, none missing", 0.2)


def test_vm_and_sidecar_dying_together_leave_an_unknown_tail(stage, controller):
    app = under_load(stage)
    with Load(app, NODE, 1):
        pass
    sidecar = sidecar_pid(app.pid)
    os.kill(sidecar, signal.SIGSTOP)  # it cannot say farewell
    before = time.time_ns()
    os.kill(app.pid, signal.SIGKILL)
    os.kill(sidecar, signal.SIGKILL)

    def unknown():
        return [i for i in stage.json("ls", "--all") if i["tail_since_ns"]]
    instance = processes.wait_until(unknown, 20, "an unknown tail in `weft ls`", 0.5)[0]
    assert before - 10_000_000_000 < instance["tail_since_ns"] <= time.time_ns()
    assert "tail unknown since" in stage.weft("ls", "--losses").stdout
    records = stage.json("ls", "--losses")
    assert [r["losses"] for r in records if r["instance"] == instance["instance"] and r["to_ns"] is None] == [None]
    assert "unknown what else 1 silent instance wrote" in stage.weft("tasks").stdout.replace("\n ", "")


def follow(stage, app, *options):
    return stage.start_weft("profile", app.pid, "--for", "4s", "--json", *options)


def report_of(process):
    """(summary, task names) of one `weft profile --json`, and what it said of leaving."""
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    first, *names = map(json.loads, out.splitlines())
    return first, {name["name"]: name["executions"] for name in names}, err


def of_its_window(report, name, load):
    """Whether it counts what the load sent in that time, but for what was under way at its ends."""
    inside, touching = load.counts(report[0]["from_ns"], report[0]["to_ns"])
    print(f"{name}: {report[1][name]} executions of {inside} to {touching} requests")
    return inside > 20 and 0.8 * inside < report[1][name] < 1.2 * touching


def test_two_users_profile_at_once_and_each_gets_his_own(stage, controller, jdk):
    jdk(17)
    app = stage.app("jvm", "orders", jdk=17)
    other = plan.parse("orders~G~/stock~s1~200~0~100")
    with Load(app, NODE, 1) as orders, Load(app, other, 1) as stock:
        first = follow(stage, app, "--match", "GET /orders")
        assert "instruction active" in first.stderr.readline()
        time.sleep(2)
        second = follow(stage, app, "--match", "GET /stock")
        third = follow(stage, app)
        one, two, three = report_of(first), report_of(second), report_of(third)
        processes.wait_until(lambda: memory_path(app.pid) is None, 10, "left by the last of them")
    assert list(one[1]) == ["GET /orders"] and of_its_window(one, "GET /orders", orders)
    assert list(two[1]) == ["GET /stock"] and of_its_window(two, "GET /stock", stock)
    assert set(three[1]) == {"GET /orders", "GET /stock"}, "what somebody else started is also one's own"
    assert of_its_window(three, "GET /stock", stock)
    assert "stayed in 1 VM" in one[2], "the first leaves nothing that the others follow"
    assert sum("left 1 VM, verified" in report[2] for report in (one, two, three)) == 1
    assert all(report[0]["complete"] == report[0]["executions"] for report in (one, two, three))


def test_a_controller_that_is_busy_is_waited_for(stage):
    """One that is there and does not answer at once is no reason to start nothing, or another one."""
    controller = stage.controller()
    os.kill(controller.pid, signal.SIGSTOP)
    verbs = [stage.start_weft("ls"), stage.start_weft("run", "--", "/bin/sh", "-c", "exit 7")]
    try:
        time.sleep(1)
        assert [verb.poll() for verb in verbs] == [None, None]
    finally:
        os.kill(controller.pid, signal.SIGCONT)
    assert [verb.wait(60) for verb in verbs] == [0, 7]


def test_a_controller_that_hangs_is_named(stage):
    controller = stage.controller()
    os.kill(controller.pid, signal.SIGSTOP)
    try:
        done = stage.weft("ls", check=False, timeout=20)
    finally:
        os.kill(controller.pid, signal.SIGCONT)
    assert done.returncode == 1 and "hangs or is overloaded" in done.stderr, done.stderr

# SPDX-License-Identifier: Apache-2.0
"""Requests without a regular answer stand in the tree of the task that sent them as what they
are, whatever the application makes of them; programs/front.py and Front.java ask a peer that
fails on purpose (tests/support/faulty.py)."""
import csv
import http.client
import io
import os
import re
import signal
import subprocess
import threading
import time

import pytest
import processes
from faulty import FaultyPeer
from fixtures_chain import instruct
from fixtures_probe import ACTIVE, state
from fixtures_wire import PROGRAMS

CAPTURE_ACTION = 4
WANTED = {"fine": None, "reset": "reset", "cut": "reset", "closed": "closed", "half": "closed", "silent": "timeout"}


class Front:
    def __init__(self, stage, process, port, peer):
        self.stage, self.pid, self.port, self.peer = stage, process.pid, port, peer

    def ask(self, path, timeout=30):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        connection.request("GET", path)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def ask_beside(self, path):
        """Asks in a thread; returns once the peer was asked."""
        def run():
            try:
                self.ask(path, 60)
            except (OSError, http.client.HTTPException):
                pass  # the stage ends first
        threading.Thread(target=run, daemon=True).start()
        processes.wait_until(lambda: path in self.peer.asked, 10, "the peer asked for " + path)

    def executions(self, *paths, subtasks=2):
        """The executions of these paths, once there is one of each and nothing is added any more."""
        seen = []

        def listed():
            found = {e["name"]: e for e in self.stage.json("tasks", "--each")}
            wanted = {path: found.get(f"GET {path}") for path in paths}
            whole = all(e and e["subtasks"][0]["hop"] == "root" and len(e["subtasks"]) >= subtasks for e in wanted.values())
            seen.append(wanted)
            return wanted if whole and len(seen) > 2 and seen[-3] == wanted else None
        return processes.wait_until(listed, 15, "executions", 0.2)


def joined(stage, peer, command, port, service="front", instances=1):
    process = stage.start([stage.build / "weft", "run", "--service", service, "--", *command], env=stage.env())
    processes.wait_until(lambda: processes.listens(port), 20, "the front listening")
    stage.wait_instances(instances)
    instruct(stage, "--root", f"pid={process.pid}", "--embed", f"pid={process.pid}")
    processes.wait_until(lambda: state(process.pid)[0] == ACTIVE, 5, "active probe")
    return Front(stage, process, port, peer)


@pytest.fixture
def peer():
    with FaultyPeer() as value:
        yield value


@pytest.fixture
def python(stage, controller, peer):
    port = processes.free_port(stage.rng)
    return joined(stage, peer, [processes.PYTHON, PROGRAMS / "front.py", port, peer.port], port)


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    target = tmp_path_factory.mktemp("front")
    subprocess.run([processes.javac(processes.java_home(17)), "-d", target, PROGRAMS / "Front.java"], check=True)
    return target


@pytest.fixture(params=[17, 25])
def java(request, stage, controller, peer, jdk, classes):
    port = processes.free_port(stage.rng)
    return joined(stage, peer, [jdk(request.param) / "bin" / "java", "-cp", classes, "Front", port, peer.port], port)


def leaves(execution):
    top, *rest = execution["subtasks"]
    assert top["hop"] == "root" and top["error"] is None
    assert all(leaf["parent"] == top["id"] and leaf["hop"] == "embed_only" for leaf in rest)
    return [leaf["error"] for leaf in rest]


def columns(front):
    """{name: errors} of `weft tasks --csv`."""
    rows = csv.DictReader(io.StringIO(front.stage.weft("tasks", "--csv").stdout))
    return {row["name"]: int(row["errors"]) for row in rows}


def assert_shown(front, found, wanted):
    """The waterfall has the word on the leaf's line, the table counts the execution."""
    counts = columns(front)
    for path, error in wanted.items():
        lines = front.stage.weft("show", found[path]["task"][:12]).stdout.splitlines()
        marked = [line for line in lines if line.startswith("127.0.0.1:")]
        assert marked and all((error or "outside") in line for line in marked), lines
        assert counts[f"GET {path}"] == (error is not None), counts


def test_cpython(python):
    wanted = {f"/{client}/{fault}": error for client in ("client", "urllib") for fault, error in WANTED.items()}
    wanted |= {"/socket/silent": "timeout", "/socket/reset": "reset", "/nobody/silent": "closed", "/upload/reset": "reset"}
    for path, error in wanted.items():
        status, text = python.ask(path)
        assert (status == 200) == (error is None or path.startswith("/nobody")), (path, text)
    found = python.executions(*wanted)
    assert {path: leaves(execution) for path, execution in found.items()} == {p: [e] for p, e in wanted.items()}
    assert found["/client/silent"]["subtasks"][1]["duration_ns"] >= 400_000_000, "as long as it waited"
    assert_shown(python, found, wanted)


def test_jvm(java):
    """HttpURLConnection asks once more where a connection ended before any answer; that of 17 takes
    half an answer for a whole one. The tree shows what it was."""
    wanted = {f"/url/{fault}": error for fault, error in WANTED.items()}
    for path, error in wanted.items():
        status, text = java.ask(path)
        assert (status == 200) == (error is None) or path == "/url/half", (path, text)
    found = java.executions(*wanted)
    assert {path: set(leaves(execution)) for path, execution in found.items()} == {p: {e} for p, e in wanted.items()}
    for path, execution in found.items():  # what a peer never read before it reset was sent all the same
        assert 1 <= java.peer.asked.count(path) <= len(leaves(execution)) <= 2, "each attempt is a request"
    assert_shown(java, found, wanted)


def test_both_sides(python):
    """The caller gives up while the callee still waits for its own peer: an error of the request
    that stands between them, and of the callee's, each as its sender saw it. A callee that is
    killed has not answered either."""
    stage, port = python.stage, processes.free_port(python.stage.rng)
    command = [processes.PYTHON, PROGRAMS / "front.py", port, python.port, "0.1"]
    first = joined(stage, python.peer, command, port, "first", 2)
    instruct(stage, "--capture", f"pid={python.pid}")
    processes.wait_until(lambda: state(python.pid)[1] & CAPTURE_ACTION, 5, "capture in force")
    assert first.ask("/client/silent")[0] == 502 and first.ask("/patient/half")[0] == 200
    first.ask_beside("/patient/late")

    def told():
        found = first.executions("/client/silent", "/patient/half", subtasks=3)
        return {path: [(s["hop"], s["error"]) for s in execution["subtasks"]] for path, execution in found.items()}

    processes.wait_equal(told, {"/client/silent": [("root", None), ("proven", "timeout"), ("embed_only", "timeout")],
                                "/patient/half": [("root", None), ("proven", None), ("embed_only", "closed")]}, 5, "both sides")
    os.kill(python.pid, signal.SIGKILL)
    top, *rest = first.executions("/patient/late", subtasks=2)["/patient/late"]["subtasks"]
    assert top["status"] == 502 and [s["error"] for s in rest] == ["closed"], rest


def test_profile_counts_them(python):
    """The caller answers 200 to all of them."""
    profile = python.stage.start_weft("profile", str(python.pid), "--for", "2s", "--match", "GET /nobody/*",
                                      env={"COLUMNS": "120"})
    asked = 0
    while profile.poll() is None:
        assert python.ask("/nobody/silent")[0] == 200
        asked += 1
        time.sleep(0.1)
    out, err = profile.communicate()
    name, = [line for line in out.splitlines() if line.startswith("GET /nobody/silent ")]
    count, errors = re.search(r"(\d+) executions? .* (\d+) errors?", name).groups()
    assert 0 < int(count) == int(errors) <= asked, (name, err)


def open_at_the_end(front):
    """A long poll and a stream of events that are open when the instruction ends, and one answer."""
    paths = ["/patient/late", "/patient/events"]
    for path in paths:
        front.ask_beside(path)
    assert front.ask("/patient/fine")[0] == 200
    some = front.peer.events_sent + 10
    processes.wait_until(lambda: front.peer.events_sent >= some, 10, "some events")
    for row in front.stage.json("ls"):
        for number in row.get("instructions", []):
            front.stage.weft("stop", number)
    found = front.executions(*paths, "/patient/fine")
    for path in paths:
        top, leaf = found[path]["subtasks"]
        assert (top["error"], leaf["error"]) == ("open", "open") and leaf["parent"] == top["id"]
        assert leaf["status"] == (200 if path.endswith("events") else None), "of the answer that has begun"
        assert leaf["duration_ns"] >= 300_000_000 and not found[path]["complete"]
        shown = front.stage.weft("show", found[path]["task"][:12]).stdout.splitlines()
        assert sum("open" in line for line in shown[1:3]) == 2, shown
    assert leaves(found["/patient/fine"]) == [None]


def test_cpython_open(python):
    open_at_the_end(python)


def test_jvm_open(java):
    open_at_the_end(java)

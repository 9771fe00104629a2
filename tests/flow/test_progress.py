# SPDX-License-Identifier: Apache-2.0
"""Whatever takes long says how far it is, on a terminal alone, and leaves no trace of it there."""
import contextlib
import os
import signal
import sqlite3

import otlp
import pytest
from fixtures_probe import sidecar_pid
from forests import Forest
from terminal import Terminal


@contextlib.contextmanager
def stopped(pid):
    """It stands still until the block ends."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def on_terminal(stage, *words):
    """Its stderr is a terminal, its stdout is not; what it said is gone in the end."""
    with Terminal([stage.build / "weft", *words], stage.env(TERM="xterm"), stdout=False) as terminal:
        yield terminal
        out, _ = terminal.process.communicate(timeout=300)
        terminal.drain()
        assert terminal.process.returncode == 0, terminal.bytes
        assert b"\r" not in out and b"\x1b" not in out, out


@pytest.mark.parametrize("words", [["tasks"], ["ls"], ["tasks", "--each"], ["stop", "1"]], ids=" ".join)
def test_a_controller_that_takes_its_time(stage, controller, words):
    stage.app("http", "front", run=True)
    stage.wait_instances(1)
    stage.weft("instruct", "--root", "service=front")
    with stopped(controller.pid), on_terminal(stage, *words) as terminal:
        terminal.until("waiting for the controller's answer: ")
        os.kill(controller.pid, signal.SIGCONT)
    assert terminal.screen() == [""], terminal.bytes


def test_a_controller_that_opens_its_store(stage):
    """Started in the background by the first verb; somebody else holds its store for a moment."""
    stage.stop(stage.controller())
    store, = stage.directory.rglob("weft.db")
    with contextlib.closing(sqlite3.connect(store, isolation_level=None)) as holder:
        holder.execute("PRAGMA locking_mode = EXCLUSIVE")
        holder.execute("BEGIN EXCLUSIVE")
        with on_terminal(stage, "ls") as terminal:
            terminal.until("a controller starts and opens its store: ")
            holder.close()
    assert terminal.screen() == [""]


def test_a_collector_that_takes_its_time(stage, controller, rng):
    otlp.classes()  # or it is missing
    forest = Forest(rng, 5)
    forest.write(stage.directory / "forest.weftr")
    stage.weft("replay", stage.directory / "forest.weftr", "--speed", "max")
    with otlp.Collector([3, (503, {}), 0.1]) as collector:
        words = "export", "--format", "otlp", "--to", collector.url, "all"
        with on_terminal(stage, *words) as terminal:
            terminal.until("5 executions, ")
        assert terminal.screen() == [""]
        with on_terminal(stage, *words) as terminal:
            terminal.until("the collector is busy (status 503)")
        assert terminal.screen() == [""]
        assert stage.weft(*words).stderr == ""


def test_recording(stage, controller):
    with on_terminal(stage, "record", stage.directory / "run.weftr", "--for", "3s") as terminal:
        terminal.until_match(r"recording: 0 reports, 0\.0 MiB, \d s")
    assert [line for line in terminal.screen() if line] == [f"weft: recording to {stage.directory}/run.weftr"]


def test_a_sidecar_that_takes_its_time(stage, controller):
    app = stage.app("http", "front", run=True)
    stage.wait_instances(1)
    sidecar = sidecar_pid(app.pid)
    with stopped(sidecar), on_terminal(stage, "instruct", "--root", "service=front") as terminal:
        terminal.until("instruction 1: acknowledged by 0 of 1")
        os.kill(sidecar, signal.SIGCONT)
    assert terminal.screen() == [""]
    with stopped(sidecar), on_terminal(stage, "detach", app.pid) as terminal:
        terminal.until("leaving: 0 of 1 VMs so far")
        os.kill(sidecar, signal.SIGCONT)
    assert terminal.screen() == [""]


def test_a_process_that_takes_long_to_join(stage, controller):
    """It stands still for a while: no thread of it comes to a point where it may be entered."""
    app = stage.app("http", "front")
    with stopped(app.pid), on_terminal(stage, "attach", str(app.pid)) as terminal:
        terminal.until("joining %d: " % app.pid)
        os.kill(app.pid, signal.SIGCONT)
    assert terminal.screen() == [""], terminal.bytes

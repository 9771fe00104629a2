# SPDX-License-Identifier: Apache-2.0
"""Leaving: after detach, and after the death of anybody else, the VM is as it was."""
import os
import pathlib
import re
import signal
import time

import processes
import pytest
import victims
from fixtures_chain import instruct, send, settle
from fixtures_load import Load, look
from fixtures_peer import TRACEPARENT, RecordingPeer
from fixtures_probe import ACTIVE, IDLE, LEAVING, STATUS, memory, memory_path, sidecar_pid, state, threads
from scenario import plan

LEASE_S = 5
NODE = plan.parse("orders~G~/orders~s1~200~0~100")


@pytest.fixture
def peer():
    with RecordingPeer() as made:
        yield made


def calling(stage, kind, peer, **options):
    """A service that can call the recording peer."""
    return stage.app(kind, "orders", peers={"peer": f"http://127.0.0.1:{peer.port}"}, **options)


def marked(app, peer):
    """Sends one request through `app`; whether the request that reached the peer carried an id."""
    before = len(peer.heads)
    send(app, plan.parse("orders~G~/orders~s0~200~0~10(peer~G~/x~s0~200~0~10)"))
    head, = peer.arrived(1, since=before)
    return bool(TRACEPARENT.search(head))


def work(stage, app):
    """Joined, told everything, active."""
    instruct(stage, "--root", f"pid={app.pid}", "--embed", f"pid={app.pid}", "--capture", f"pid={app.pid}")
    processes.wait_until(lambda: state(app.pid)[0] == ACTIVE, 3, "active probe")


def assert_left(app):
    assert memory_path(app.pid) is None, "its descriptor is closed"
    processes.wait_until(lambda: "weft-probe" not in threads(app.pid), 2, "end of the probe's thread")


@pytest.mark.parametrize("version", [17, 25])
def test_detach_leaves_an_attached_jvm_as_it_was(stage, controller, jdk, version):
    jdk(version)
    app = stage.app("jvm", "orders", jdk=version)
    saved = stage.directory / "before"
    with Load(app, NODE, 2) as load:
        assert look(app.pid, "--save", saved).returncode == 0
        stage.weft("attach", app.pid)
        stage.wait_instances(1)
        work(stage, app)
        load.goes_on()
        assert "verified" in stage.weft("detach", app.pid).stdout
        load.goes_on()
        compared = look(app.pid, "--compare", saved)
        assert compared.returncode == 0, compared.stdout + compared.stderr
        assert_left(app)


@pytest.mark.parametrize("kind", ["http", "jvm"])
def test_detach_leaves_what_weft_run_started(stage, controller, kind):
    app = stage.app(kind, "orders", run=True)
    stage.wait_instances(1)
    with Load(app, NODE, 2) as load:
        work(stage, app)
        load.goes_on()
        assert "verified" in stage.weft("detach", app.pid).stdout
        load.goes_on()
        saved = stage.directory / "after"
        assert look(app.pid, "--save", saved).returncode == 0
        compared = look(app.pid, "--compare", saved)
        assert compared.returncode == 0, "a slot into the probe, a thread or a memfd: " + compared.stdout
        assert_left(app)


@pytest.mark.parametrize("kind", ["http", "jvm"])
def test_what_is_stopped_leaves_when_it_goes_on(stage, controller, kind):
    """Nobody makes it go on: what is left of us in it is said, and it goes when the process does."""
    app = stage.app(kind, "orders")
    saved = stage.directory / "before"
    send(app, NODE)
    assert look(app.pid, "--save", saved).returncode == 0
    stage.weft("attach", app.pid)
    stage.wait_instances(1)
    work(stage, app)
    os.kill(app.pid, signal.SIGSTOP)
    said = stage.weft("detach", app.pid, check=False)
    os.kill(app.pid, signal.SIGCONT)
    assert said.returncode == 1 and "NOT as before: 0 of" in said.stdout
    assert "1 thread of ours not ended; what is stopped (SIGSTOP) leaves when it goes on" in said.stdout
    processes.wait_until(lambda: memory_path(app.pid) is None, 10, "a process without us")
    assert_left(app)
    compared = look(app.pid, "--compare", saved)
    assert compared.returncode == 0, compared.stdout + compared.stderr
    send(app, NODE)


@pytest.mark.parametrize("kind", ["http", "jvm"])
def test_a_killed_sidecar_leaves_an_idle_probe(stage, controller, peer, kind):
    app = calling(stage, kind, peer, run=True)
    stage.wait_instances(1)
    work(stage, app)
    assert marked(app, peer)
    os.kill(sidecar_pid(app.pid), signal.SIGKILL)
    send(app, NODE)
    processes.within(lambda: state(app.pid) == (IDLE, 0), LEASE_S + 2, "idle probe once the lease is over")
    assert not marked(app, peer), "an idle probe embeds nothing"
    send(app, NODE)


def test_the_next_attach_takes_over_from_a_killed_sidecar(stage, controller, peer):
    app = calling(stage, "jvm", peer)
    stage.weft("attach", app.pid)
    stage.wait_instances(1)
    work(stage, app)
    first = sidecar_pid(app.pid)
    os.kill(first, signal.SIGKILL)
    processes.wait_until(lambda: not pathlib.Path(f"/proc/{first}/exe").exists(), 5, "the end of the sidecar")
    stage.weft("attach", app.pid)
    assert sidecar_pid(app.pid) != first
    processes.wait_until(lambda: state(app.pid)[0] == ACTIVE, 5, "active probe under its second sidecar")
    assert marked(app, peer)
    assert "verified" in stage.weft("detach", app.pid).stdout
    assert_left(app)


def test_a_killed_controller_leaves_idle_probes(stage, peer):
    controller = stage.controller()
    app = calling(stage, "http", peer, run=True)
    stage.wait_instances(1)
    work(stage, app)
    controller.kill()
    controller.wait()
    start = time.monotonic()
    processes.within(lambda: state(app.pid) == (IDLE, 0), LEASE_S + 2, "idle probe once the lease is over")
    assert time.monotonic() - start > 2, "a lost heartbeat or two is no reason to stop"
    assert not marked(app, peer)
    stage.controller()
    stage.wait_instances(1)
    work(stage, app)
    assert marked(app, peer), "the next controller finds the instance again"


def test_attach_and_detach_twenty_times_under_load(stage, controller, jdk):
    jdk(17)
    app = stage.app("jvm", "orders", jdk=17)
    saved = stage.directory / "before"
    with Load(app, NODE, 2) as load:
        assert look(app.pid, "--save", saved).returncode == 0
        instruct(stage, "--root", "service=orders", "--capture", "service=orders")
        for _ in range(20):
            stage.weft("attach", "--service", "orders", app.pid)
            processes.wait_until(lambda: state(app.pid)[0] == ACTIVE, 5, "active probe")
            assert "verified" in stage.weft("detach", app.pid).stdout
            load.goes_on()
        compared = look(app.pid, "--compare", saved)
        assert compared.returncode == 0, compared.stdout + compared.stderr
        assert_left(app)


def test_a_vm_that_ends_is_reported_whole(stage, controller):
    """What the VM did before its death is not lost with it: the memory outlives it."""
    app = stage.app("http", "orders", run=True)
    stage.wait_instances(1)
    work(stage, app)
    for _ in range(20):
        send(app, NODE)
    app.process.kill()

    def tasks():
        return len([e for e in stage.json("tasks", "--each") if e["kind"] == "task"])

    # The last answer may be out while its report is not yet written: then it died with the VM.
    processes.wait_until(lambda: tasks() >= 19, 5, "what was done before the end")
    settle()
    assert tasks() <= 20


def test_a_vm_that_ends_in_the_window_is_as_before(stage, controller):
    """What was rewritten in it went with it: no reason to say that something is left."""
    stays, ends = stage.app("http", "orders"), stage.app("http", "front")
    profile = stage.start_weft("profile", str(stays.pid), str(ends.pid), "--for", "60s")
    for app in (stays, ends):
        processes.wait_until(lambda: state(app.pid)[0] == ACTIVE, 10, "active probe")
    send(stays, NODE)
    ends.process.kill()
    ends.process.wait()
    profile.send_signal(signal.SIGINT)
    out, said = profile.communicate(timeout=100)
    assert re.search(r"left \d VMs?, verified", out), (out, said)


@pytest.mark.parametrize("whom", ["weft alone", "everybody in the terminal"])
def test_ctrl_c_at_any_time_leaves(stage, controller, jdk, rng, whom):
    """Also while it is just being joined: who joined a VM leaves it."""
    jdk(25)
    app = stage.app("jvm", "orders", jdk=25)
    for wait in (0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.13, 0.17, 0.22, 0.3, 0.5):
        profile = stage.start_weft("profile", str(app.pid), "--for", "20s", start_new_session=True)
        time.sleep(wait + rng.random() * 0.02)
        if whom == "weft alone":
            profile.send_signal(signal.SIGINT)
        else:
            os.killpg(profile.pid, signal.SIGINT)
        profile.communicate(timeout=125)
        assert memory_path(app.pid) is None, f"still joined after Ctrl-C at {wait} s"
    send(app, NODE)


@pytest.mark.parametrize("how", ["nobody reads", "hang up"])
def test_profile_whose_terminal_is_gone_leaves(stage, jdk, how):
    jdk(17)
    app = stage.app("jvm", "orders", jdk=17)
    with Load(app, NODE, 2):
        profile = stage.start_weft("profile", str(app.pid), "--for", "2s")
        assert "joined 1 VM" in profile.stderr.readline()
        if how == "hang up":
            profile.send_signal(signal.SIGHUP)
        else:
            profile.stdout.close()
            profile.stderr.close()
        profile.wait(100)
        assert_left(app)
    assert profile.returncode >= 0, "it ended by itself"


def test_who_joins_again_waits_for_the_last_sidecar(stage, controller):
    """It says that it has left before it lets go: who comes in between is not told `already joined`."""
    app = stage.app("http", "orders")
    stage.weft("attach", app.pid)
    sidecar = sidecar_pid(app.pid)
    for pid in app.pid, sidecar:  # in that moment, for longer
        os.kill(pid, signal.SIGSTOP)
    try:
        processes.wait_until(lambda: victims.state(app.pid) == victims.state(sidecar) == "T", 5, "both stopped")
        with memory(app.pid) as mapped:
            mapped[STATUS] = LEAVING
        again = stage.start_weft("attach", str(app.pid))
        time.sleep(0.5)
        assert again.poll() is None, again.communicate()
        with memory(app.pid) as mapped:
            mapped[STATUS] = IDLE
        out, said = again.communicate(timeout=20)
        assert again.returncode == 0 and "already joined" in out, (out, said)
    finally:
        for pid in app.pid, sidecar:
            os.kill(pid, signal.SIGCONT)
    send(app, NODE)
    stage.weft("detach", app.pid)
    assert_left(app)

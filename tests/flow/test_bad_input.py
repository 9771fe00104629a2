# SPDX-License-Identifier: Apache-2.0
"""Bad input of every kind: one line that says what, why and what to do next, a non-zero exit
where it was a command, and everybody else goes on."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import time

import processes
import pytest
import zmq
from fixtures_chain import chain, executions, instruct, path_through, send, settle
from fixtures_probe import ACTIVE, memory_path, spoil_rings, state
from scenario import plan
from subscriber import endpoint

NODE = plan.parse("orders~G~/orders~s0~200~0~10")
NOBODY = 65534


def one_line(done, *needed, codes=(1, 2)):
    """The rule for errors: one line on stderr, "weft: what: why; what next", nothing on stdout."""
    assert done.returncode in codes, f"exit {done.returncode}: {done.stdout} {done.stderr}"
    lines = done.stderr.splitlines()
    assert len(lines) == 1, f"one line, not {len(lines)}: {done.stderr}"
    assert re.match(r"weft(-instance)?: \S", lines[0]), lines[0]
    assert re.search(r"[;:(]", lines[0][6:]), f"says no reason or next step: {lines[0]}"
    for text in needed:
        assert re.search(text, lines[0]), f"{text!r} is not in: {lines[0]}"
    return lines[0]


def unused_pid():
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


# ---- pids ------------------------------------------------------------------


@pytest.mark.parametrize("verb", [["attach"], ["profile", "--for", "1s"]], ids=lambda verb: verb[0])
def test_unknown_pid(stage, controller, verb):
    pid = unused_pid()
    one_line(stage.weft(verb[0], str(pid), *verb[1:], check=False), str(pid), "no process")


@pytest.mark.parametrize("word", ["0", "-5", "12x", "99999999999999999999", ""])
def test_pid_that_is_no_pid(stage, controller, word):
    one_line(stage.weft("attach", "--", word, check=False), "pid|process")


def test_not_a_vm(stage, controller):
    process = stage.start(["sleep", "60"])
    one_line(stage.weft("attach", process.pid, check=False), str(process.pid), "not a process VM", "sleep")
    assert process.poll() is None


@pytest.fixture
def public_build():
    """The binaries where another user can run them."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="weft-public-"))
    directory.chmod(0o755)
    for name in ("weft", "weft-instance", "libweft_probe.so"):
        shutil.copy(processes.BUILD / name, directory / name)
    yield directory
    shutil.rmtree(directory)


@pytest.mark.skipif(os.geteuid() != 0, reason="missing: root, to become somebody else")
def test_someone_elses_process(stage, public_build):
    app = stage.app("jvm", "orders", jdk=17)
    home = public_build / "home"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    env = stage.env(WEFT_CONTROLLER=f"ipc://{home}/ctl", HOME=str(home), XDG_STATE_HOME=str(home))
    controller = stage.start(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
                              public_build / "weft", "controller"], env=env, cwd="/")
    processes.wait_until(lambda: processes.takes_connections(home / "ctl" / "control"), 5, "the other user's controller")
    done = subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
                           public_build / "weft", "attach", str(app.pid)], env=env, cwd="/", capture_output=True,
                          text=True, check=False, timeout=100)
    one_line(done, str(app.pid), "root|user|belongs|owner")
    assert memory_path(app.pid) is None
    send(app, NODE)
    stage.stop(controller)


# ---- VMs that refuse ---------------------------------------------------------


@pytest.mark.parametrize("version", [17, 25])
@pytest.mark.parametrize("option", ["-XX:+DisableAttachMechanism", "-XX:-EnableDynamicAgentLoading"])
def test_vm_that_refuses_attach(stage, controller, jdk, version, option):
    jdk(version)
    app = stage.app("jvm", "orders", jdk=version, options=[option])
    send(app, NODE)
    one_line(stage.weft("attach", app.pid, check=False), str(app.pid), "HotSpot", re.escape(option), "weft run|restart")
    send(app, NODE)
    assert "Full thread dump" not in app.text(), "no signal was sent to a VM that does not expect it"
    assert memory_path(app.pid) is None
    assert not list(pathlib.Path(f"/proc/{app.pid}/cwd").glob(f".attach_pid{app.pid}"))


def test_one_refusal_does_not_keep_the_others_out(stage, controller, jdk):
    jdk(17)
    refusing = stage.app("jvm", "search", jdk=17, options=["-XX:+DisableAttachMechanism"])
    orders = stage.app("jvm", "orders", jdk=17)
    done = stage.weft("attach", refusing.pid, orders.pid, check=False)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and str(refusing.pid) in done.stderr
    assert [i["pid"] for i in stage.wait_instances(1)] == [orders.pid]


# ---- the command line ----------------------------------------------------------


@pytest.mark.parametrize("selector, why", [
    ("servce=orders", "servce"), ("service", "="), ("service=", ""), ("pid=abc", "pid"), ("a=b,,c=d", ""),
    ("service=" + "x" * 600, ""), ("instance=1234", "instance")])
def test_bad_selector(stage, controller, selector, why):
    one_line(stage.weft("instruct", "--embed", selector, check=False), why)


def test_empty_pattern(stage, controller):
    """What an unset variable of a shell gives: not all tasks."""
    one_line(stage.weft("instruct", "--root", "*", "--match", "", check=False), "empty", "--match")


@pytest.mark.parametrize("duration", ["10", "10y", "-1s", "", "s", "9999999h", "1.5.2s", "0s"])
def test_bad_duration(stage, controller, duration):
    app = stage.app("http", "orders", run=True)
    one_line(stage.weft("profile", app.pid, "--for", duration, check=False), "--for|duration")
    send(app, NODE)


@pytest.mark.parametrize("address", ["", "orders", "http://127.0.0.1:7000", "tcp://", "tcp://127.0.0.1:x",
                                     "tcp://127.0.0.1:99999", "ipc://", "ipc://" + "/x" * 100])
def test_bad_address(stage, address):
    one_line(stage.weft("controller", "--listen", address, check=False, timeout=5), "address|listen|endpoint|ipc|tcp")
    one_line(stage.weft("ls", "--controller", address, check=False, timeout=10), "address|controller|endpoint|ipc|tcp")


def test_occupied_port(stage):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = stage.weft("controller", "--listen", f"tcp://127.0.0.1:{port}", check=False, timeout=10)
        one_line(done, str(port), "in use|already")


def test_address_of_a_living_controller(stage, controller):
    done = stage.weft("controller", "--listen", stage.address, check=False, timeout=10)
    one_line(done, str(controller.pid), "already")
    assert stage.weft("ls").returncode == 0, "the first one is not robbed of its socket"


def test_plain_tcp_beyond_loopback_is_refused(stage):
    one_line(stage.weft("controller", "--listen", "tcp://0.0.0.0:7070", check=False, timeout=10), "0\\.0\\.0\\.0|loopback")


def test_command_that_cannot_be_run(stage, controller):
    one_line(stage.weft("run", "--", "/no/such/program", check=False), "/no/such/program", codes=(127,))
    one_line(stage.weft("run", "--", "/etc/hostname", check=False), "/etc/hostname", codes=(126,))


def test_output_that_cannot_be_written(stage, controller):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([processes.BUILD / "weft", "ls", "--csv"], stdout=full, stderr=subprocess.PIPE, text=True,
                              env=stage.env(), check=False)
    done.stdout = ""
    one_line(done, "No space", codes=(1,))


# ---- the store and the disk ------------------------------------------------------


def test_store_of_a_newer_schema(stage):
    store = stage.directory / "newer.db"
    with sqlite3.connect(store) as database:
        database.execute("PRAGMA user_version = 7")
        database.execute("CREATE TABLE task (id BLOB)")
    before = store.read_bytes()
    done = stage.weft("controller", "--listen", stage.address, "--store", store, check=False, timeout=10)
    one_line(done, "newer.db", "schema 7|newer", "--store|version")
    assert store.read_bytes() == before, "not a byte of it is touched"


def test_store_that_is_no_store(stage):
    store = stage.directory / "text.db"
    store.write_text("This is no database. " * 500)
    done = stage.weft("controller", "--listen", stage.address, "--store", store, check=False, timeout=10)
    one_line(done, "text.db")
    assert store.read_text().startswith("This is no database")


@pytest.fixture
def small_disk(stage):
    """A file system of 2 MiB."""
    path = stage.directory / "small"
    path.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "weft-test", path], check=False).returncode != 0:
        raise processes.Missing("the right to mount a small tmpfs")
    yield path
    subprocess.run(["umount", "-l", path], check=True)


def test_full_disk(stage, small_disk):
    """The controller says it once, keeps what it was told in memory, and writes it down
    when there is room again. The application notices nothing."""
    controller = stage.controller("--store", small_disk / "weft.db", "--journal", small_disk / "journal")
    app = stage.app("http", "orders", run=True)
    stage.wait_instances(1)
    instruct(stage, "--root", "service=orders", "--capture", "service=orders")
    send(app, NODE)
    executions(stage, lambda all_: len(all_) == 1)
    filler = small_disk / "filler"
    with open(filler, "wb", buffering=0) as out:
        with pytest.raises(OSError, match="No space"):
            while True:
                out.write(b"x" * 4096)
    for _ in range(50):
        send(app, NODE)
    out = stage.directory / "controller.out"
    processes.wait_until(lambda: re.search(r"weft: .*(full|no space|room)", out.read_text(), re.IGNORECASE), 10, "a complaint")
    settle(3)
    assert controller.poll() is None, "a full disk ends no controller"
    said = out.read_text()
    assert len(said.splitlines()) < 10, "said, not repeated for ever: " + said
    filler.unlink()
    send(app, NODE)
    executions(stage, lambda all_: len(all_) == 52, 15)
    assert stage.weft("ls").returncode == 0


# ---- garbage on the sockets --------------------------------------------------------


def frames_of_garbage(rng):
    yield b""
    yield b"\xc1"
    yield b"\x93\x01\x00\x04"
    yield b"\x93\xce\xff\xff\xff\xff\x00\x04"  # a newer major version
    yield b"\x9f" * 3000  # arrays in arrays
    yield b"\xdd\xff\xff\xff\xff\xff"  # an array of four thousand million
    yield b"\x94\x01\x00\x01\xdf\xff\xff\xff\xff"
    yield b'{"op":"nothing"}'
    yield b"[" * 5000
    yield b"{" * 100 + b"\xff" * 100
    for size in (1, 3, 64, 5000, 130_000, 140_000):
        yield rng.randbytes(size)


def garble(socket_, rng, wrap):
    for frame in frames_of_garbage(rng):
        socket_.send_multipart(wrap(frame))
    for _ in range(300):
        socket_.send_multipart([rng.randbytes(rng.randrange(80)) for _ in range(rng.randrange(1, 5))])


def raw_bytes(address, rng):
    """Bytes that are not even ZeroMQ, straight into the listening socket."""
    for _ in range(5):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(address.removeprefix("ipc://"))
            try:
                client.sendall(rng.randbytes(3000))
            except OSError:
                pass


@pytest.mark.parametrize("kind, name", [(zmq.PUSH, "reports"), (zmq.DEALER, "control"), (zmq.XSUB, "instructions")],
                         ids=["PULL", "ROUTER", "XPUB"])
def test_garbage_on_a_socket_of_the_controller(stage, controller, rng, kind, name):
    app = stage.app("http", "orders", run=True)
    stage.wait_instances(1)
    instruct(stage, "--root", "service=orders", "--capture", "service=orders")
    send(app, NODE)
    context = zmq.Context()
    hostile = context.socket(kind)
    hostile.setsockopt(zmq.SNDTIMEO, 5000)
    hostile.connect(endpoint(stage.address, name))
    try:
        garble(hostile, rng, lambda frame: [frame])
        settle()
    except zmq.Again:
        pass  # it may well stop listening to such a peer
    raw_bytes(endpoint(stage.address, name), rng)
    context.destroy(linger=200)
    assert controller.poll() is None
    for _ in range(5):
        send(app, NODE)
    executions(stage, lambda all_: len(all_) == 6)
    said = (stage.directory / "controller.out").read_text()
    assert len(said.splitlines()) < 20, "counted, not logged line by line"


def test_garbage_on_the_socket_of_a_sidecar(stage, rng):
    """What comes down to the instances is no more trusted than what goes up."""
    with chain(stage, ("http", "jvm"), ("front", "orders")) as running:
        instruct(stage, "--root", "service=front", "--embed", "service=front", "--capture", "service=orders")
        for frame in frames_of_garbage(rng):
            for topic in (b"all", b"", b"service/orders", f"instance/{running.uuid('front')}".encode()):
                running.tap.inject(topic, frame)
            running.tap.inject(b"all")
            running.tap.inject(b"all", frame, frame)
        settle(0.5)
        send(running.apps["front"], path_through("front", "orders"))
        executions(stage, lambda all_: [e["hops"]["proven"] for e in all_] == [1])
        assert len(stage.json("ls")) == 2


# ---- the shared memory -------------------------------------------------------------


def losses(stage, app):
    return next(i["losses"] for i in stage.json("ls") if i["pid"] == app.pid)


def test_corrupt_ring(stage, controller, rng):
    """Garbage all over one VM's rings: the VM answers, its sidecar goes on and counts the
    damage, the other instance is not touched by it."""
    spoilt = stage.app("http", "orders", run=True)
    other = stage.app("http", "pricing", run=True)
    stage.wait_instances(2)
    instruct(stage, "--root", "*", "--capture", "*")
    processes.wait_until(lambda: state(spoilt.pid)[0] == ACTIVE and state(other.pid)[0] == ACTIVE, 3, "active probes")
    other_node = plan.parse("pricing~G~/price~s0~200~0~10")
    for _ in range(10):
        spoil_rings(spoilt.pid, rng)
        for _ in range(5):
            send(spoilt, NODE)
            send(other, other_node)
        time.sleep(0.05)
    assert spoilt.alive() and other.alive()
    executions(stage, lambda all_: sum(e["name"] == "GET /price" for e in all_) == 50)
    assert not [e for e in stage.json("tasks", "--each") if e["name"] not in ("GET /price", "GET /orders")], \
        "nothing is made up from garbage"
    instances = {i["pid"]: i for i in stage.json("ls")}
    assert sorted(instances) == sorted([spoilt.pid, other.pid])
    processes.wait_until(lambda: losses(stage, spoilt)["undecodable"] > 0, 3, "counted damage")
    stage.weft("detach", spoilt.pid, check=False)
    send(spoilt, NODE)


def test_a_spoilt_ring_is_used_again(stage, controller, rng):
    """What comes after the damage arrives; it costs what was in the rings, and one report in
    each ring at most."""
    app = stage.app("http", "orders", run=True)
    stage.wait_instances(1)
    instruct(stage, "--root", "*", "--capture", "*")
    processes.wait_until(lambda: state(app.pid)[0] == ACTIVE, 3, "active probe")
    spoil_rings(app.pid, rng)

    def tasks():
        return len(stage.json("tasks", "--each"))

    def a_whole_round():
        before = tasks()
        for _ in range(50):
            send(app, NODE)
        with contextlib.suppress(processes.Failed):
            return processes.within(lambda: tasks() == before + 50, 2, "all 50")

    processes.wait_until(a_whole_round, 20, "50 requests of which all are reported")


def test_ring_whose_writer_stopped_for_good(stage, controller):
    """A stopped VM is no fault of anybody: nothing hangs, and it is there again afterwards."""
    app = stage.app("http", "orders", run=True)
    stage.wait_instances(1)
    instruct(stage, "--root", "*", "--capture", "*")
    os.kill(app.pid, signal.SIGSTOP)
    settle(1)
    assert len(stage.json("ls")) == 1
    os.kill(app.pid, signal.SIGCONT)
    send(app, NODE)
    executions(stage, lambda all_: len(all_) >= 1)

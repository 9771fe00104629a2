# SPDX-License-Identifier: Apache-2.0
"""Strangers at the controller's sockets: refused, counted, and nobody else notices.

A stranger here speaks ZeroMQ through pyzmq, or bytes through a plain socket; what the
controller counted is asked for over its own control socket.
"""
import contextlib
import json
import os
import pathlib
import re
import resource
import socket
import stat
import subprocess
import threading
import time

import processes
import pytest
import zmq
from fixtures_chain import executions, instruct, path_through, send
from scenario import plan
from subscriber import endpoint

NODE = plan.parse("orders~G~/orders~s0~200~0~10")
GREETING = b"\xff\0\0\0\0\0\0\0\1\x7f"  # the first ten bytes of ZMTP 3
NOBODY = 65534


class Keys:
    """A directory that `weft keys` made, for pyzmq."""

    def __init__(self, stage, name="keys", *options):
        self.path = stage.directory / name
        self.made = stage.weft("keys", self.path, *options).stdout

    def read(self, name):
        text = (self.path / name).read_bytes()
        return dict(line.split(b" ", 1) for line in text.splitlines() if not line.startswith(b"#"))

    def own(self, role):
        return self.read(f"{role}.key")[b"public"], self.read(f"{role}.key")[b"secret"]

    @property
    def controller(self):
        return self.read("controller.pub")[b"public"]


@pytest.fixture
def keys(stage):
    return Keys(stage)


@pytest.fixture
def curve(stage, keys, rng):
    """The stage's controller behind tcp, with keys; everything on the stage finds them in its environment."""
    stage.address = f"tcp://127.0.0.1:{processes.free_port(rng)}"
    plain_env = stage.env
    stage.env = lambda **more: plain_env(**{"WEFT_KEYS": str(keys.path), **more})
    return stage.controller()


@contextlib.contextmanager
def peer(base, name, kind, pair=None, server=None):
    """A socket of a stranger, or of a friend."""
    context = zmq.Context()
    made = context.socket(kind)
    made.linger, made.sndtimeo = 0, 2000 * processes.PATIENCE
    if server:
        made.curve_serverkey, (made.curve_publickey, made.curve_secretkey) = server, pair
    made.connect(endpoint(base, name))
    try:
        yield made
    finally:
        context.destroy(linger=0)


def ask(socket_, request, seconds=3 * processes.PATIENCE):
    """The answer of the control socket, or None."""
    socket_.send_json(request)
    return socket_.recv_json() if socket_.poll(seconds * 1000) else None


def strangers(stage, keys=None):
    """What the controller counted. A new client each time."""
    with peer(stage.address, "control", zmq.DEALER, keys and keys.own("client"), keys and keys.controller) as friend:
        answer = ask(friend, {"op": "stats"}, 10 * processes.PATIENCE)
    if not answer:
        raise processes.Failed("the controller does not say whom it saw")
    return answer["strangers"]


def counted(stage, wanted, seconds=8, keys=None):
    """Waits until wanted(counts) holds; the counts."""
    def look():
        counts = strangers(stage, keys)
        return (counts,) if wanted(counts) else None
    return processes.wait_until(look, seconds, "counted strangers", 0.1)[0]


def audit(stage):
    lines = (stage.directory / "state" / "weft" / "audit.log").read_text().splitlines()
    return [json.loads(line) for line in lines]


class Service:
    """An application under weft with an instruction that follows each of its requests."""

    def __init__(self, stage):
        self.stage = stage
        self.app = stage.app("http", "orders", run=True)
        stage.wait_instances(1)
        instruct(stage, "--root", "service=orders", "--capture", "service=orders")
        self.sent = 0

    def work(self, count=10):
        for _ in range(count):
            send(self.app, NODE)
        self.sent += count

    def complete(self):
        """Every request is an execution; nothing was lost on the way."""
        executions(self.stage, lambda all_: len(all_) == self.sent, 15)
        instance, = self.stage.json("ls")
        assert not any(instance["losses"].values())


# ---- keys ------------------------------------------------------------------


def test_right_keys_work_end_to_end(stage, curve):
    """Two VMs, an instruction, reports and a detach, all of it over CURVE."""
    orders = stage.app("http", "orders", run=True)
    front = stage.app("http", "front", peers={"orders": orders.url}, run=True)
    stage.wait_instances(2)
    number, = instruct(stage, "--root", "service=front", "--embed", "*", "--capture", "*")[:1]
    for _ in range(20):
        send(front, path_through("front", "orders"))
    found = executions(stage, lambda all_: sum(e["kind"] == "task" and e["hops"]["proven"] == 1 for e in all_) == 20)
    assert len(found) == 20
    stage.weft("stop", number)
    assert "left 2 VMs" in stage.weft("detach", "--all").stdout
    lines = audit(stage)
    assert {line["who"] for line in lines} == {"key local"}
    assert {line["pid"] for line in lines if line["event"] == "attach"} == {orders.pid, front.pid}
    assert [line["instruction"] for line in lines if line["event"] == "stop"] == [number]
    assert {line["pid"] for line in lines if line["event"] == "left"} == {orders.pid, front.pid}
    assert {pid for line in lines if line["event"] == "detach" for pid in line["pids"]} == {orders.pid, front.pid}
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"]) for line in lines)


def test_a_key_works_in_its_role_only(stage, keys, curve):
    """Who reports cannot instruct, who instructs cannot report."""
    with peer(stage.address, "control", zmq.DEALER, keys.own("client"), keys.controller) as friend:
        assert ask(friend, {"op": "ping"})["ok"]
    with peer(stage.address, "control", zmq.DEALER, keys.own("instance"), keys.controller) as stranger:
        assert ask(stranger, {"op": "quit"}, 1) is None
    with peer(stage.address, "reports", zmq.PUSH, keys.own("client"), keys.controller):
        assert counted(stage, lambda counts: counts["unlisted"] >= 2, keys=keys)["foreign"] == 0
    assert curve.poll() is None


@pytest.mark.parametrize("which", ["not listed", "no key", "wrong key of the controller"])
def test_wrong_keys(stage, keys, curve, which):
    own, server = zmq.curve_keypair(), keys.controller
    if which == "no key":
        own = server = None
    if which == "wrong key of the controller":
        own, server = keys.own("client"), zmq.curve_keypair()[0]
    service = Service(stage)
    before, knocked = strangers(stage, keys), 0
    # Both sides notice that they speak different languages; who does first hangs up, and then knocks no more.
    counters = ["unlisted"] if which == "not listed" else ["broken", "hung_up"]
    for name, kind in (("control", zmq.DEALER), ("reports", zmq.DEALER), ("instructions", zmq.SUB)):
        with peer(stage.address, name, kind, own, server) as stranger:
            if kind == zmq.SUB:
                stranger.subscribe(b"")
            else:
                stranger.send(b'{"op":"quit"}')
            service.work()
            assert not stranger.poll(1500), "a stranger hears nothing"
            knocked += 1
            counted(stage, lambda counts: sum(counts[one] - before[one] for one in counters) >= knocked, keys=keys)
    counted(stage, lambda counts: counts["unfinished"] >= before["unfinished"] + 3, keys=keys)
    service.complete()


def test_the_command_line_says_why(stage, keys, curve):
    for env, needed in (({"WEFT_KEYS": ""}, "--keys"), ({"WEFT_KEYS": str(stage.directory)}, "controller.pub"),
                        ({"WEFT_KEYS": str(Keys(stage, "other").path)}, "not admitted|not its key")):
        done = stage.weft("ls", check=False, env=env)
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
        assert re.search(needed, done.stderr) and "weft: " in done.stderr
    secret = keys.path / "client.key"
    secret.chmod(0o640)
    assert "chmod 600" in stage.weft("ls", check=False).stderr


def test_a_key_for_another_host_can_be_shut_out(stage, keys, curve):
    stage.weft("keys", keys.path, "--for", "box2")
    theirs = {"WEFT_KEYS": str(keys.path / "box2")}
    assert stage.weft("ls", env=theirs).returncode == 0
    (keys.path / "clients" / "box2.pub").unlink()
    assert stage.weft("ls", env=theirs, check=False).returncode == 1
    assert stage.weft("ls").returncode == 0


def test_keys_are_never_written_over(stage, keys):
    before = {file: file.read_bytes() for file in keys.path.rglob("*") if file.is_file()}
    assert len(before) == 6
    again = stage.weft("keys", keys.path).stdout
    assert again.count("there") == 6 and "made" not in again
    assert {file: file.read_bytes() for file in keys.path.rglob("*") if file.is_file()} == before
    for file in before:
        assert stat.S_IMODE(file.stat().st_mode) == (0o600 if file.suffix == ".key" else 0o644)


# ---- plain tcp -----------------------------------------------------------------


def test_plain_tcp_beyond_loopback_is_refused_by_everybody(stage, rng):
    far = "tcp://192.0.2.1:7300"  # a documentation address: nobody is there
    for verb in (["ls"], ["instruct", "--root", "*"], ["run", "--", "true"]):
        done = stage.weft(verb[0], "--controller", far, *verb[1:], check=False, timeout=5)
        assert done.returncode != 0 and "--plain-tcp" in done.stderr and len(done.stderr.splitlines()) == 1
    sidecar = subprocess.run([processes.BUILD / "weft-instance", "run", "--controller", far, "--", "true"], env=stage.env(),
                             capture_output=True, text=True, check=False, timeout=60)
    assert sidecar.returncode != 0 and "--plain-tcp" in sidecar.stderr


def test_plain_tcp_beyond_loopback_on_request_is_said_aloud(stage, rng):
    stage.address = f"tcp://0.0.0.0:{processes.free_port(rng)}"
    near = stage.address.replace("0.0.0.0", "127.0.0.1")
    process = stage.start([processes.BUILD / "weft", "controller", "--listen", stage.address, "--plain-tcp"],
                          stderr=subprocess.PIPE, text=True, env=stage.env())
    line = process.stderr.readline()
    assert "WARNING" in line and "plain tcp" in line and "weft keys" in line
    processes.wait_until(lambda: stage.weft("ls", "--controller", near, check=False).returncode == 0, 5, "an answer")
    process.terminate()
    process.communicate(timeout=60)


# ---- another user on this host -------------------------------------------------------


def test_local_sockets_are_closed_to_others(stage, controller):
    directory = stage.directory / "ctl"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    for name in ("control", "instructions", "reports"):
        assert stat.S_IMODE((directory / name).stat().st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="missing: root, to become somebody else")
def test_another_user_is_refused_though_the_directory_is_open(stage, controller):
    """The kernel says who connects: modes that somebody opened do not matter."""
    service = Service(stage)
    directory = stage.directory / "ctl"
    for path in (stage.directory, directory):
        path.chmod(0o755)
    for name in ("control", "reports"):
        (directory / name).chmod(0o666)
    # It ends at once: the end of an interpreter may put away the context before its socket, and wait for that for ever.
    code = ("import os, sys, zmq\ns = zmq.Context().socket(zmq.DEALER)\ns.linger = 0\ns.connect(sys.argv[1])\n"
            "s.send(b'{\"op\":\"quit\"}')\nprint(s.poll(1000), flush=True)\nos._exit(0)\n")
    for name in ("control", "reports"):
        done = subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", processes.PYTHON,
                               "-c", code, endpoint(stage.address, name)], capture_output=True, text=True, check=False,
                              timeout=100, cwd="/")
        assert done.stdout.strip() == "0", done.stderr
    service.work()
    counted(stage, lambda counts: counts["foreign"] >= 2)
    service.complete()


@pytest.mark.skipif(os.geteuid() != 0, reason="missing: root, to become somebody else")
def test_a_directory_of_somebody_else_is_not_obeyed(stage):
    """Who makes /tmp/weft-UID first would instruct that user's VMs."""
    trap = stage.directory / "trap"
    trap.mkdir(mode=0o755)
    os.chown(trap, NOBODY, NOBODY)
    done = stage.weft("ls", "--controller", f"ipc://{trap}", check=False)
    assert done.returncode == 1 and str(NOBODY) in done.stderr
    sidecar = subprocess.run([processes.BUILD / "weft-instance", "run", "--controller", f"ipc://{trap}", "--", "true"],
                             env=stage.env(), capture_output=True, text=True, check=False, timeout=60)
    assert sidecar.returncode != 0 and str(NOBODY) in sidecar.stderr


# ---- too much of everything ----------------------------------------------------------


@pytest.fixture(params=["ipc", "tcp", "curve"])
def any_controller(request, stage, rng):
    """A controller at each kind of address; its keys, or None."""
    if request.param == "curve":
        keys = request.getfixturevalue("keys")
        request.getfixturevalue("curve")
        return keys
    if request.param == "tcp":
        stage.address = f"tcp://127.0.0.1:{processes.free_port(rng)}"
    stage.controller()
    return None


def connect_raw(base, name):
    address = endpoint(base, name)
    if address.startswith("ipc://"):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(5 * processes.PATIENCE)
        client.connect(address.removeprefix("ipc://"))
        return client
    host, port = address.removeprefix("tcp://").split(":")
    return socket.create_connection((host, int(port)), timeout=5 * processes.PATIENCE)


def is_closed(client, seconds):
    """Whether the other side hangs up within that time."""
    client.settimeout(seconds)
    try:
        while client.recv(4096):
            pass
        return True
    except TimeoutError:
        return False
    except OSError:
        return True


def test_half_a_greeting(stage, any_controller):
    """Who does not say who he is within three seconds is shown the door; meanwhile all goes on."""
    service = Service(stage)
    clients = []
    for name in ("control", "instructions", "reports"):
        for said in (b"", GREETING[:1], GREETING, GREETING + b"\3", GREETING + b"\3\0NULL"):
            clients.append(connect_raw(stage.address, name))
            clients[-1].sendall(said)
    service.work()
    end = time.monotonic() + 6 * processes.PATIENCE
    assert all(is_closed(client, max(0.01, end - time.monotonic())) for client in clients)
    counts = counted(stage, lambda counts: counts["silent"] >= len(clients), keys=any_controller)
    assert counts["open"] < len(clients)
    service.complete()


def answered_within(stage, seconds):
    """Whether a command is; what else the machine does may be in the way once, or twice."""
    for _ in range(3):
        begun = time.monotonic()
        stage.weft("ls")
        taken = time.monotonic() - begun
        print(f"answered in {taken:.2f} s")
        if taken < seconds:
            return True
    return False


def test_two_thousand_connections(stage, any_controller):
    """A stranger holds 2,000 silent connections and renews what he loses: work and commands go on."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    service = Service(stage)
    clients, stopping = [], threading.Event()

    def crowd():
        while not stopping.is_set():
            if len(clients) >= 2000:
                clients.pop(0).close()
            with contextlib.suppress(OSError):
                clients.append(connect_raw(stage.address, ("control", "reports", "instructions")[len(clients) % 3]))
                clients[-1].sendall(GREETING)

    thread = threading.Thread(target=crowd, daemon=True)
    thread.start()
    try:
        processes.wait_until(lambda: len(clients) >= 1999, 20, "a crowd")
        for _ in range(5):
            service.work(20)
            assert answered_within(stage, 3), "a command is answered through the crowd"
        service.complete()
        assert strangers(stage, any_controller)["accepted"] >= 2000
    finally:
        stopping.set()
        thread.join(10)
        for client in clients:
            client.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    counted(stage, lambda counts: counts["open"] < 50, 10, any_controller)
    service.work()
    service.complete()


def test_oversized_frames(stage, any_controller, rng):
    """A frame beyond the limit ends its connection before anything is kept of it."""
    service = Service(stage)
    keys = any_controller
    controller_rss = rss_of(stage)
    for name, role in (("control", "client"), ("reports", "instance")):
        with peer(stage.address, name, zmq.DEALER, keys and keys.own(role), keys and keys.controller) as hostile:
            hostile.send(b"x" * (131_072 + 1))
            with contextlib.suppress(zmq.Again):  # shut out already
                hostile.send(rng.randbytes(50_000_000))
            assert not hostile.poll(500)
            service.work()
    # A frame that only claims to be large: 2^62 bytes are announced, nothing is reserved for them.
    if not keys:
        with connect_raw(stage.address, "reports") as client:
            client.sendall(GREETING + b"\3\0NULL" + b"\0" * 48 + b"\4\x1b\5READY\x0bSocket-Type\0\0\0\4PUSH"
                           + b"\2\x40\0\0\0\0\0\0\0")
            assert is_closed(client, 3 * processes.PATIENCE)
    service.complete()
    assert rss_of(stage) - controller_rss < 30_000, "kB"


def rss_of(stage):
    for pid in processes.pids_with(f"XDG_STATE_HOME={stage.directory}/"):
        with contextlib.suppress(OSError):  # one that ended meanwhile
            if b"controller\0--listen" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                status = pathlib.Path(f"/proc/{pid}/status").read_text()
                return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1))
    raise processes.Failed("no controller is there")


def test_garbage_bytes(stage, any_controller, rng):
    service = Service(stage)
    for _ in range(60):
        with connect_raw(stage.address, rng.choice(("control", "reports", "instructions"))) as client:
            with contextlib.suppress(OSError):
                client.sendall(rng.choice((b"", GREETING, GREETING + b"\3\0CURVE")) + rng.randbytes(rng.randrange(3000)))
    service.work()
    counted(stage, lambda counts: counts["unfinished"] >= 40, keys=any_controller)
    service.complete()
    said = (stage.directory / "controller.out").read_text()
    assert len(said.splitlines()) < 10, "counted, not logged line by line: " + said


def test_a_client_that_asks_too_often(stage, controller):
    """It is told so; the others are answered as before."""
    service = Service(stage)
    with peer(stage.address, "control", zmq.DEALER) as hasty:
        for _ in range(5000):
            hasty.send(b'{"op":"ping"}')
        service.work()
        assert answered_within(stage, 2)
        answers = []
        while len(answers) < 5000 and hasty.poll(1000 * processes.PATIENCE):
            answers.append(hasty.recv_json())
    assert 1000 <= sum(answer["ok"] for answer in answers) < 4000
    refused = [answer for answer in answers if not answer["ok"]]
    assert refused and all(answer["status"] == "BUSY" for answer in refused)
    assert strangers(stage)["throttled"] >= len(refused)
    service.complete()


# ---- the audit log -------------------------------------------------------------------


def test_audit_of_one_session(stage, controller):
    service = Service(stage)
    service.work(1)
    done = stage.weft("instruct", "--capture", "service=a\nb")
    stage.weft("stop", re.search(r"instruction (\d+)", done.stdout).group(1))
    stage.weft("detach", service.app.pid)
    path = stage.directory / "state" / "weft" / "audit.log"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    lines = audit(stage)
    assert [line["event"] for line in lines if line["event"] != "detach"] == ["attach", "instruct", "instruct", "stop", "left"]
    assert all(re.fullmatch(rf"uid {os.geteuid()} pid \d+", line["who"]) for line in lines)
    attach, left = lines[0], [line for line in lines if line["event"] == "left"][0]
    assert attach["pid"] == left["pid"] == service.app.pid and attach["service"] == "orders"
    assert re.match(r"(\d+) of \1 slots as before, 0 foreign", left["result"])
    sidecar = int(attach["who"].split()[-1])
    assert sidecar != service.app.pid, "who reports is the sidecar"


def test_audit_of_a_claim_whose_owner_is_gone(stage, controller):
    """What it had joined is left at the claim's time, and the audit says for whose sake it was there."""
    app = stage.app("http", "orders", run=True)
    one, = stage.wait_instances(1)
    uuids = [one["instance"]]
    with peer(stage.address, "control", zmq.DEALER) as owner:
        claim = ask(owner, {"op": "claim", "uuids": uuids, "joined": uuids, "for_ms": 500})["claim"]
    processes.wait_until(lambda: any(line["event"] == "left" for line in audit(stage)), 15, "the end of it", 0.2)
    release, left = [line for line in audit(stage) if line["event"] in ("release", "left")]
    assert release == {**release, "event": "release", "who": f"uid {os.geteuid()} pid {os.getpid()}", "pid": app.pid,
                       "instance": one["instance"], "service": "orders",
                       "reason": f"claim {claim} ended at its time", "result": "ok"}
    assert left["event"] == "left" and left["pid"] == app.pid and app.alive()

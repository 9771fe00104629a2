# SPDX-License-Identifier: Apache-2.0
"""Joining what runs already and has no way in of its own: CPython, and any dynamically linked
program, whatever it is doing, wherever it lives. It goes on as if nothing had been."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import processes
import pytest
import victims
from conftest import missing
from fixtures_chain import instruct, send
from fixtures_load import Load, look
from fixtures_peer import TRACEPARENT, RecordingPeer
from fixtures_probe import ACTIVE, memory_path, state, threads
from scenario import plan
from test_bad_input import NOBODY, one_line, public_build

NODE = plan.parse("orders~G~/orders~s1~200~0~100")
WAITS = ["poll", "ppoll", "select", "epoll", "nanosleep", "clock", "sem", "recv", "signal", "read", "condition", "child"]
WORKS = ["busy", "malloc", "alarmed", "threads", "mixed"]
KILLS, CYCLES = 30, 50
root = pytest.mark.skipif(os.geteuid() != 0, reason="missing: root")

__all__ = ["public_build"]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return victims.build(tmp_path_factory.mktemp("waits"))


def attach(stage, *pids, options=("--any",)):
    """What `weft attach` prints, by pid."""
    done = stage.weft("attach", "--json", *options, *pids)
    return {one["pid"]: one for one in map(json.loads, done.stdout.splitlines())}


def detach(stage, *pids):
    stage.wait_listed(*pids)
    assert "verified" in stage.weft("detach", *pids).stdout
    for pid in pids:
        assert memory_path(pid) is None
        processes.wait_until(lambda: "weft-probe" not in threads(pid), 2, "end of the probe's thread")


def libraries(pid):
    """The files of probes that it has mapped."""
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
        return {line.split()[4] for line in maps if "libweft_probe" in line}


def put_up(app):
    """The one thread of an idle server waits for connections: nothing of it runs."""
    return processes.wait_until(lambda: victims.state(app.pid) == "S", 5, "an idle server")


# ---- CPython -----------------------------------------------------------------


def test_an_idle_python_service_is_joined_works_and_is_left(stage, controller):
    with RecordingPeer() as peer:
        app = stage.app("http", "orders", peers={"peer": f"http://127.0.0.1:{peer.port}"})
        put_up(app)
        saved = stage.directory / "before"
        assert look(app.pid, "--save", saved).returncode == 0
        joined = attach(stage, app.pid, options=())[app.pid]
        assert joined["vm"] == "cpython" and joined["version"].startswith("3."), joined
        instruct(stage, "--root", f"pid={app.pid}", "--embed", f"pid={app.pid}", "--capture", f"pid={app.pid}")
        processes.wait_until(lambda: state(app.pid)[0] == ACTIVE, 3, "active probe")
        send(app, plan.parse("orders~G~/orders~s0~200~0~10(peer~G~/x~s0~200~0~10)"))
        assert TRACEPARENT.search(peer.heads[-1]), "the request that it sent carries an id"
        detach(stage, app.pid)
        compared = look(app.pid, "--compare", saved)
        assert compared.returncode == 0, compared.stdout + compared.stderr
        send(app, NODE)


def test_what_weft_run_started_and_left_is_joined_again(stage, controller):
    app = stage.app("http", "orders", run=True)
    stage.wait_instances(1)
    for _ in range(2):
        detach(stage, app.pid)
        assert not attach(stage, app.pid, options=())[app.pid]["already"]
        send(app, NODE)
    detach(stage, app.pid)
    assert len(libraries(app.pid)) == 1, "the library that came with it"


def test_profile_joins_a_python_service_under_load(stage):
    app = stage.app("http", "orders")
    listed = stage.weft("profile", check=False).stdout
    assert re.search(rf"^ *{app.pid} +CPython 3\S* .* ptrace", listed, re.M), listed
    with Load(app, NODE, 2) as load:
        done = stage.weft("profile", app.pid, "--for", "2s")
        assert re.search(r"GET /orders +[\d,]+ executions", done.stdout), done.stdout
        assert re.search(r"left 1 VM, verified", done.stdout), done.stdout
        load.goes_on()


@pytest.mark.parametrize("what", ["sum(i * i for i in range(1000))", "[bytearray(5000) for i in range(100)]",
                                  "import decimal; decimal.Decimal(2).sqrt()"])
def test_a_busy_python_goes_on(stage, controller, what):
    """Main thread and four others at work: nobody waits for anything."""
    page = stage.directory / "turns"
    source = ("import threading, mmap\n"
              "def work():\n    while True:\n        {what}\n        page[0] = (page[0] + 1) % 256\n"
              "file = open({path!r}, 'r+b')\npage = mmap.mmap(file.fileno(), 4096)\n"
              "for n in range(4):\n    threading.Thread(target=work, daemon=True).start()\nwork()\n")
    page.write_bytes(bytes(4096))
    process = stage.start([processes.PYTHON, "-c", source.format(what=what, path=str(page))])
    processes.wait_until(lambda: page.read_bytes()[0] > 3, 10, "work")

    def goes_on():
        seen = page.read_bytes()[0]
        processes.wait_until(lambda: page.read_bytes()[0] != seen or process.poll() is not None, 10, "more work")
        assert process.poll() is None, f"ended with {process.returncode}"

    for _ in range(3):
        attach(stage, process.pid, options=())
        goes_on()
        detach(stage, process.pid)
        goes_on()


def test_fifty_times_under_load(stage, controller):
    """For a client to which every error is fatal; nothing adds up."""
    app = stage.app("http", "orders")
    saved = stage.directory / "before"
    with Load(app, NODE, 2) as load:
        assert look(app.pid, "--save", saved).returncode == 0
        counts = []
        for _ in range(CYCLES):
            attach(stage, app.pid, options=())
            detach(stage, app.pid)
            counts.append(victims.inventory(app.pid)["executable"])
            if load.failure:
                break
        load.goes_on()
        compared = look(app.pid, "--compare", saved)
        assert compared.returncode == 0, compared.stdout + compared.stderr
    assert len(libraries(app.pid)) == 1, "one mapping, used again"
    assert len(set(counts)) == 1, f"executable mappings add up: {counts}"
    processes.wait_until(lambda: len(os.listdir(f"/proc/{app.pid}/task")) == 1, 5, "one thread, its own")


def standing(look):
    """What it sees, once it sees the same again a moment later."""
    last = []

    def same():
        last.append(look())
        return len(last) > 2 and last[-1] == last[-3]
    processes.wait_until(same, 10, "a count that stands still", 0.1)
    return last[-1]


# ---- whatever it does ------------------------------------------------------------


def test_no_wait_is_disturbed(stage, controller, program):
    """Twelve ways to wait, each by a program to which an interrupted call, or one of the wrong
    length, is fatal; all joined at once, three times over."""
    all_of_them = [victims.Victim(stage, program, mode) for mode in WAITS]
    pids = [victim.pid for victim in all_of_them]
    counts = []
    for _ in range(3):
        joined = attach(stage, *pids)
        assert set(joined) == set(pids)
        for victim in all_of_them:
            victim.goes_on(1)
        detach(stage, *pids)
        counts.append(standing(lambda: [victims.inventory(pid)["descriptors"] for pid in pids]))
    for victim in all_of_them:
        victim.goes_on()
    assert counts[0] == counts[-1]


@pytest.mark.parametrize("mode", WORKS)
def test_no_work_is_disturbed(stage, controller, program, mode):
    """Sums in every register, malloc, malloc under a timer's signal, eight threads in malloc and dlopen."""
    victim = victims.Victim(stage, program, mode)
    for _ in range(3):
        attach(stage, victim.pid)
        victim.goes_on()
        detach(stage, victim.pid)
        victim.goes_on()


def test_a_thread_that_does_not_stop_is_not_kept(stage, controller, program):
    """It sits in a call that nothing interrupts: another thread is taken, and it goes on when its call does,
    while the sidecar lives."""
    try:
        victim = victims.Victim(stage, program, "stuck")
    except processes.Failed as failure:
        missing(f"userfaultfd ({failure})")
    attach(stage, victim.pid)
    victim.goes_on()
    with open(victim.page, "r+b") as page:
        page.seek(8)
        page.write(b"\1")
    processes.wait_until(lambda: victim.page.read_bytes()[16] == 1, 5, "the end of its call")
    assert victims.state(victim.pid) == "S", "it sleeps, nobody holds it"
    detach(stage, victim.pid)
    victim.goes_on()


def test_two_at_once_bring_one_probe(stage, controller, program):
    victim = victims.Victim(stage, program, "poll")
    verbs = [stage.start_weft("attach", "--any", "--json", str(victim.pid)) for _ in range(3)]
    answers = []
    for verb in verbs:
        out, err = verb.communicate(timeout=150)
        assert verb.returncode == 0, err
        answers += [json.loads(line) for line in out.splitlines()]
    assert len({one["instance"] for one in answers}) == 1, answers
    assert sum(not one["already"] for one in answers) == 1, answers
    assert len(libraries(victim.pid)) == 1
    detach(stage, victim.pid)
    victim.goes_on()


@pytest.fixture
def reaping():
    with victims.reaping():
        yield


def test_a_sidecar_killed_at_any_moment_of_joining(stage, controller, program, rng, reaping):
    """The target goes on, and the next one joins it. (A wait in epoll_wait that treats EINTR as fatal
    would notice a death within the first microseconds: the kernel never makes that call again.)"""
    killed = 0
    for mode in ("poll", "sem", "busy"):
        victim = victims.Victim(stage, program, mode)
        for _ in range(KILLS // 3):
            delay_s = rng.uniform(0, 0.012)
            try:
                killed += victims.attach_and_kill(stage, victim.pid, delay_s)
                victim.goes_on(1)
                attach(stage, victim.pid)
                detach(stage, victim.pid)
                victim.goes_on(1)
            except (AssertionError, processes.Failed) as error:
                raise AssertionError(f"{mode}, killed after {delay_s * 1000:.3f} ms: {error}") from error
    assert killed > KILLS // 3, "most are killed before they have joined"


STEPS_MOST = 60


def test_a_sidecar_that_dies_at_each_step_of_joining(stage, controller, program):
    """Not at random: after each single call to the kernel while a thread is held, one after the
    other, until there is none left. The waits are of the right length even then."""
    build = processes.ROOT / "build" / "faults"
    if not (build / "weft-instance").exists():
        missing("%s (make FAULTS=1 fault-tools)" % build)
    modes, died, all_of_them = ("poll", "condition", "read", "busy"), 0, []
    for index, mode in enumerate(modes):
        victim = victims.Victim(stage, program, mode)
        all_of_them.append((victim, victims.inventory(victim.pid)["threads"]))
        for step in range(1 + index, STEPS_MOST + 1, len(modes)):  # each step once
            env = stage.env(WEFT_FAULT=f"hold:{step}", WEFT_PROBE=str(stage.build / "libweft_probe.so"))
            done = subprocess.run([build / "weft-instance", "attach", "--any", str(victim.pid)], env=env, timeout=150,
                                  capture_output=True, text=True, check=False)
            victim.goes_on(1)
            died += done.returncode != 0
            if done.returncode:
                assert "did not start" in done.stderr, f"step {step}: {done.stderr}"
                attach(stage, victim.pid)
                victim.goes_on(1)
            detach(stage, victim.pid)
            victim.goes_on(1)
    assert 20 < died < STEPS_MOST, "there are so many steps, and these were all"
    for victim, before in all_of_them:
        processes.wait_until(lambda: victims.inventory(victim.pid)["threads"] == before, 10, "end of our threads")


def test_a_stopped_process_stays_stopped_and_is_joined_when_it_goes_on(stage, controller, program):
    victim = victims.Victim(stage, program, "poll")
    os.kill(victim.pid, signal.SIGSTOP)
    processes.wait_until(lambda: victims.state(victim.pid) == "T", 5, "stopped victim")
    verb = stage.start_weft("attach", "--any", "--json", str(victim.pid))
    seen = victim.count()
    end = time.monotonic() + 0.7
    while time.monotonic() < end:
        assert victims.state(victim.pid) == "T"
    assert verb.poll() is None and victim.count() == seen and memory_path(victim.pid) is None
    os.kill(victim.pid, signal.SIGCONT)
    _, err = verb.communicate(timeout=150)
    assert verb.returncode == 0, err
    victim.goes_on()
    detach(stage, victim.pid)


REPLACED = """
import os, sys
print(os.getpid(), flush=True)
sys.stdin.readline()
if len(sys.argv) == 1:
    os.execv(sys.executable, [sys.executable, "-c", sys.orig_argv[2], "again"])
print("whole", flush=True)
"""


def test_a_program_that_is_replaced_while_it_is_joined(stage, controller):
    """What was found in its memory is not in that of its successor, which has another layout: that is left alone, and
    joined when it is asked for again."""
    process = stage.start([processes.PYTHON, "-c", REPLACED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          env=stage.env())
    pid = int(process.stdout.readline())
    os.kill(pid, signal.SIGSTOP)
    processes.wait_until(lambda: victims.state(pid) == "T", 5, "a stopped process")
    verb = stage.start_weft("attach", str(pid))
    processes.wait_until(lambda: f"@weft-joins-{pid}\n" in pathlib.Path("/proc/net/unix").read_text(), 10, "somebody who joins it")
    time.sleep(0.3)  # it looks at the memory, then waits until the process goes on
    process.stdin.write("on\n")
    process.stdin.flush()
    os.kill(pid, signal.SIGCONT)
    _, err = verb.communicate(timeout=150)
    assert int(process.stdout.readline()) == pid, "its successor lives"
    assert verb.returncode == 0 or "it has become another program meanwhile (exec); try again" in err
    processes.wait_until(lambda: victims.state(pid) == "S", 5, "an idle program")
    stage.weft("attach", pid)
    out, _ = process.communicate("on\n", timeout=60)
    assert out == "whole\n" and process.returncode == 0


def test_a_child_that_still_has_its_parents_memory(stage, controller):
    """Between vfork and exec: what was brought into it would be in its parent, and a lock that it held when it calls
    exec would be held there for good."""
    source = pathlib.Path(__file__).parent / "programs" / "vforks.c"
    subprocess.run(["gcc", "-O1", "-o", stage.directory / "vforks", source], check=True)
    process = stage.start([stage.directory / "vforks"], stdout=subprocess.PIPE, text=True, env=stage.env(), cwd=stage.directory)
    child = int(process.stdout.readline())
    one_line(stage.weft("attach", "--any", child, check=False), r"\(vfork\) and is about to become another program", codes=(1,))
    doctor = stage.weft("doctor", "--any", "--json", child, check=False)
    assert json.loads(doctor.stdout)["joinable"] is False
    (stage.directory / "go").touch()
    out, _ = process.communicate(timeout=60)
    assert out == "0 of a probe\n" and process.returncode == 0


def test_a_newer_probe_attaches_beside_an_old_one(stage, controller, program):
    victim = victims.Victim(stage, program, "poll")
    attach(stage, victim.pid)
    detach(stage, victim.pid)
    assert len(libraries(victim.pid)) == 1
    note = subprocess.run(["readelf", "-n", stage.build / "libweft_probe.so"], capture_output=True, text=True, check=True)
    build_id = bytes.fromhex(re.search(r"Build ID: ([0-9a-f]+)", note.stdout).group(1))
    other = stage.directory / "libweft_probe.so"
    bytes_of_it = (stage.build / "libweft_probe.so").read_bytes()
    assert bytes_of_it.count(build_id) == 1
    other.write_bytes(bytes_of_it.replace(build_id, bytes(20)))
    for _ in range(2):
        stage.weft("attach", "--any", victim.pid, env={"WEFT_PROBE": str(other)})
        victim.goes_on(1)
        detach(stage, victim.pid)
        assert len(libraries(victim.pid)) == 2, "each build once"
    attach(stage, victim.pid)
    detach(stage, victim.pid)
    assert len(libraries(victim.pid)) == 2, "the old one again"
    victim.goes_on()


# ---- wherever it lives --------------------------------------------------------------


def test_a_deleted_executable(stage, controller):
    """An upgrade replaced the interpreter while it ran."""
    copy = stage.directory / "python3"
    shutil.copy(processes.PYTHON, copy)
    process = stage.start([copy, "-c", "import time\nwhile True: time.sleep(0.01)"])
    processes.wait_until(lambda: victims.state(process.pid) == "S", 10, "a sleeping python")
    copy.unlink()
    assert attach(stage, process.pid, options=())[process.pid]["vm"] == "cpython"
    detach(stage, process.pid)
    assert process.poll() is None


def child_of(process):
    return processes.wait_until(lambda: processes.children_of(process.pid), 5, "the process in its namespaces")[0]


@root
@pytest.mark.parametrize("spaces", [["--pid", "--fork", "--kill-child"], ["--pid", "--fork", "--kill-child", "--mount-proc"],
                                    ["--net"], ["--user", "--map-root-user"],
                                    ["--pid", "--fork", "--kill-child", "--mount", "--net", "--ipc", "--uts", "--user",
                                     "--map-root-user", "--mount-proc"]], ids=" ".join)
def test_other_namespaces(stage, controller, program, spaces):
    victim = victims.Victim(stage, program, "mixed", prefix=["unshare", *spaces])
    pid = child_of(victim.process) if "--fork" in spaces else victim.pid
    for _ in range(2):
        attach(stage, pid)
        victim.goes_on()
        detach(stage, pid)
        victim.goes_on()
    os.kill(pid, signal.SIGKILL)  # `unshare --fork` takes no SIGTERM


@root
def test_a_root_that_is_read_only_and_has_no_tmp(stage, controller, program):
    """Nothing can be written and the library is not to be seen: it comes as a descriptor."""
    script = ("mount --make-rprivate / && mount -t tmpfs -o ro,size=4k none /tmp && mount -o remount,bind,ro / && "
              "exec /proc/self/fd/{0} mixed /proc/self/fd/{1}")
    binary = os.open(program, os.O_RDONLY)
    page = os.open(stage.directory / "page", os.O_RDWR | os.O_CREAT, 0o600)
    os.truncate(page, 4096)
    process = stage.start(["unshare", "--mount", "sh", "-c", script.format(binary, page)], pass_fds=(binary, page))
    counted = lambda: os.pread(page, 8, 0)  # noqa: E731
    processes.wait_until(lambda: counted() != bytes(8), 10, "the victim at work")
    assert not os.path.exists(f"/proc/{process.pid}/root{stage.build}") or stage.build.parts[1] != "tmp"
    attach(stage, process.pid)
    seen = counted()
    processes.wait_until(lambda: counted() != seen, 10, "the victim going on")
    detach(stage, process.pid)
    assert process.poll() is None
    os.close(binary)
    os.close(page)


@root
def test_another_users_process(stage, controller, program):
    stage.directory.chmod(0o755)
    program.parent.chmod(0o755)
    victim = victims.Victim(stage, program, "mixed", prefix=["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}",
                                                            "--clear-groups"])
    attach(stage, victim.pid)
    victim.goes_on()
    detach(stage, victim.pid)
    victim.goes_on()


# ---- whoever is not to be joined ---------------------------------------------------------


def test_a_traced_process_is_refused(stage, controller, program):
    victim = victims.Victim(stage, program, "poll")
    tracer = stage.start(["strace", "-qq", "-o", "/dev/null", "-p", victim.pid])
    processes.wait_until(lambda: b"TracerPid:\t0\n" not in pathlib.Path(f"/proc/{victim.pid}/status").read_bytes(), 5,
                         "a traced victim")
    one_line(stage.weft("attach", "--any", victim.pid, check=False), str(victim.pid), f"process {tracer.pid} traces it")
    victim.goes_on()


def test_a_static_program_is_refused(stage, controller, tmp_path):
    victim = victims.Victim(stage, victims.build(tmp_path, "-static", name="static"), "poll")
    one_line(stage.weft("attach", "--any", victim.pid, check=False), "statically linked", "dynamically linked build")
    victim.goes_on()


@root
def test_a_filter_that_does_not_allow_it_is_read_first(stage, controller, program):
    """The call would end it: it is named instead."""
    victim = victims.Victim(stage, program, "forbidden")
    one_line(stage.weft("attach", "--any", victim.pid, check=False), "seccomp", r"\((memfd_create|restart_syscall)\)", "weft run")
    victim.goes_on()
    uneven = victims.Victim(stage, program, "uneven")
    one_line(stage.weft("attach", "--any", uneven.pid, check=False), "seccomp", "differently", "weft run")
    uneven.goes_on()


@root
@pytest.mark.parametrize("mode", ["filtered", "allowed"])
def test_a_filter_that_allows_it(stage, controller, program, mode):
    """One that allows everything, and one that ends the process at every call that we do not know of, while the probe
    embeds and captures."""
    victim = victims.Victim(stage, program, mode)
    instruct(stage, "--on", "*")
    for _ in range(2):
        attach(stage, victim.pid)
        processes.wait_until(lambda: state(victim.pid)[0] == ACTIVE, 5, "active probe")
        victim.goes_on(10)
        detach(stage, victim.pid)
        victim.goes_on()
    if mode == "allowed":
        processes.wait_until(lambda: any(one["name"] == "GET /x" for one in stage.json("tasks", "--each")), 15, "what it did")


def attach_by_its_user(stage, program, public_build, mode):
    """A victim of somebody without any right, and what `attach` by himself says of it."""
    stage.directory.chmod(0o755)
    program.parent.chmod(0o755)
    become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    victim = victims.Victim(stage, program, mode, prefix=become)
    home = public_build / "home"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    env = stage.env(WEFT_CONTROLLER=f"ipc://{home}/ctl", HOME=str(home), XDG_STATE_HOME=str(home))
    return victim, subprocess.run([*become, public_build / "weft-instance", "attach", "--any", str(victim.pid)], env=env, cwd="/",
                                capture_output=True, text=True, check=False, timeout=100)


@root
def test_a_filter_that_nobody_but_root_may_read(stage, program, public_build):
    victim, done = attach_by_its_user(stage, program, public_build, "filtered")
    one_line(done, "seccomp", "root", "weft run")
    victim.goes_on()


@root
def test_a_process_that_hides_from_its_own_user(stage, program, public_build):
    """Not for another program of the same user; for root, all the same."""
    victim, done = attach_by_its_user(stage, program, public_build, "hidden")
    one_line(done, "not dumpable", "root")
    stage.controller()
    attach(stage, victim.pid)
    detach(stage, victim.pid)
    victim.goes_on()


def test_what_is_no_vm_is_joined_only_when_told(stage, controller, program):
    victim = victims.Victim(stage, program, "poll")
    one_line(stage.weft("attach", victim.pid, check=False), "not a process VM")
    assert memory_path(victim.pid) is None
    attach(stage, victim.pid)
    detach(stage, victim.pid)

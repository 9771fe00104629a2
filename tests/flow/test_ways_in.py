# SPDX-License-Identifier: Apache-2.0
"""JVMs that are started or live in other ways than usual, signals that are somebody else's, and
programs of other kinds: each is joined without being disturbed, or refused before anything is sent."""
import os
import shutil
import signal
import subprocess
import time

import processes
import pytest
import victims
from fixtures_probe import memory_path
from test_bad_input import NOBODY, one_line, public_build

PROGRAMS = processes.ROOT / "tests" / "flow" / "programs"
DUMP = "Full thread dump"
root = pytest.mark.skipif(os.geteuid() != 0, reason="missing: root")
BOTH = pytest.mark.parametrize("version", [17, 25])

__all__ = ["public_build"]


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    target = tmp_path_factory.mktemp("quit")
    subprocess.run([processes.javac(processes.java_home(17)), "-nowarn", "-d", target, PROGRAMS / "Quit.java"], check=True,
                   capture_output=True)
    for path in (target, *target.parents[:2]):
        path.chmod(0o755)  # for another user
    return target


class Java:
    """`java OPTIONS Quit`, behind a prefix that may fork."""

    def __init__(self, stage, home, classes, *options, prefix=(), forks=False):
        self.stage, self.output = stage, stage.directory / ("quit-%d" % time.monotonic_ns())
        with open(self.output, "wb") as out:
            self.process = stage.start([*prefix, home / "bin" / "java", "-Xmx64m", *options, "-cp", classes, "Quit"],
                                       stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=stage.env(), cwd="/")
        processes.wait_until(lambda: "at work" in self.text(), 60, "a JVM at work")
        self.pid = processes.children_of(self.process.pid)[0] if forks else self.process.pid

    def text(self):
        return self.output.read_text("utf-8", "replace")

    def untouched(self):
        assert self.process.poll() is None, self.text()
        assert DUMP not in self.text() and "SIGQUIT came" not in self.text(), self.text()


def join_and_leave(stage, java, **env):
    for _ in range(2):
        stage.weft("attach", java.pid, env=env)
        stage.wait_listed(java.pid)
        assert memory_path(java.pid)
        assert "verified" in stage.weft("detach", java.pid).stdout
        assert memory_path(java.pid) is None
        java.untouched()


@BOTH
@pytest.mark.parametrize("handler", [False, True], ids=["no handler", "a handler of its own"])
def test_a_jvm_that_leaves_its_signals_alone(stage, controller, jdk, classes, tmp_path, version, handler):
    """-Xrs: SIGQUIT would end it, or be the application's. The socket is there from the start."""
    library = tmp_path / "own_quit.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, PROGRAMS / "own_quit.c"], check=True)
    java = Java(stage, jdk(version), classes, "-Xrs", prefix=["env", f"LD_PRELOAD={library}"] if handler else ())
    join_and_leave(stage, java)
    if handler:
        java.process.send_signal(signal.SIGQUIT)
        processes.wait_until(lambda: "SIGQUIT came" in java.text(), 5, "the handler, which is still there")


def test_a_python_with_a_sigquit_handler(stage, controller):
    source = "import signal, time\nsignal.signal(signal.SIGQUIT, lambda *_: print('came', flush=True))\nprint('ready', flush=True)\n" \
             "while True: time.sleep(0.05)\n"
    process = stage.start([processes.PYTHON, "-u", "-c", source], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    stage.weft("attach", process.pid)
    stage.wait_listed(process.pid)
    stage.weft("detach", process.pid)
    process.send_signal(signal.SIGQUIT)
    assert process.stdout.readline() == "came\n"
    process.kill()
    assert process.stdout.read() == "", "once"


@BOTH
def test_a_stopped_jvm_is_sent_nothing(stage, controller, jdk, classes, version):
    java = Java(stage, jdk(version), classes)
    java.process.send_signal(signal.SIGSTOP)
    processes.wait_until(lambda: victims.state(java.pid) == "T", 5, "a stopped JVM")
    verb = stage.start_weft("attach", "--json", str(java.pid))
    end = time.monotonic() + 1
    while time.monotonic() < end:
        status = dict(line.split(":", 1) for line in open(f"/proc/{java.pid}/status", encoding="ascii"))
        pending = int(status["SigPnd"], 16) | int(status["ShdPnd"], 16)
        assert victims.state(java.pid) == "T" and not pending >> signal.SIGQUIT - 1 & 1
    assert verb.poll() is None
    java.process.send_signal(signal.SIGCONT)
    _, err = verb.communicate(timeout=150)
    assert verb.returncode == 0, err
    stage.wait_listed(java.pid)
    stage.weft("detach", java.pid)
    java.untouched()


SPACES = {"pid": ["--pid", "--fork", "--kill-child", "--mount-proc"], "net": ["--net"], "user": ["--user", "--map-root-user"],
          "all": ["--pid", "--fork", "--kill-child", "--mount", "--net", "--ipc", "--uts", "--user", "--map-root-user",
                  "--mount-proc"]}


@root
@pytest.mark.parametrize("spaces", SPACES)
def test_a_jvm_in_other_namespaces(stage, controller, jdk, classes, spaces):
    options = SPACES[spaces]
    java = Java(stage, jdk(17), classes, prefix=["unshare", *options], forks="--fork" in options)
    join_and_leave(stage, java)
    os.kill(java.pid, signal.SIGKILL)  # `unshare --fork` takes no SIGTERM


@root
@BOTH
def test_another_users_jvm(stage, controller, jdk, classes, public_build, version):
    stage.directory.chmod(0o755)
    java = Java(stage, jdk(version), classes,
                prefix=["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"])
    join_and_leave(stage, java, WEFT_PROBE=str(public_build / "libweft_probe.so"))


@root
def test_a_jvm_that_can_write_nowhere_is_refused(stage, controller, jdk, classes):
    """Its socket has no place: said so, and nothing is sent."""
    script = ("mount --make-rprivate / && mount -t tmpfs -o size=4m none /mnt && mkdir /mnt/c && cp -r \"$1\"/* /mnt/c && "
              "mount -t tmpfs -o ro,size=4k none /tmp && mount -o remount,bind,ro / && shift && "
              "exec \"$@\"")
    java = Java(stage, jdk(17), "/mnt/c", prefix=["unshare", "--mount", "sh", "-c", script, "sh", classes])
    done = stage.weft("attach", java.pid, check=False)
    one_line(done, str(java.pid), "HotSpot", "; ")
    java.untouched()
    assert memory_path(java.pid) is None


# ---- what is no program that a probe fits into ------------------------------------------


def test_a_musl_program_is_refused(stage, controller, tmp_path):
    """Known by its loader, which is a file of that name here."""
    loader = tmp_path / "ld-musl-x86_64.so.1"
    shutil.copy("/lib64/ld-linux-x86-64.so.2", loader)
    victim = victims.Victim(stage, victims.build(tmp_path), "poll", prefix=[loader])
    one_line(stage.weft("attach", "--any", victim.pid, check=False), "musl", "built for glibc")
    victim.goes_on()


def test_a_32_bit_program_is_refused(stage, controller, tmp_path):
    source, program = tmp_path / "pause.s", tmp_path / "pause"
    source.write_text(".globl _start\n_start:\n  mov $29, %eax\n  int $0x80\n  jmp _start\n")  # pause (), again and again
    built = subprocess.run(["gcc", "-m32", "-nostdlib", "-static", "-o", program, source], capture_output=True, check=False)
    if built.returncode:
        raise processes.Missing("gcc -m32")
    process = stage.start([program])
    processes.wait_until(lambda: victims.state(process.pid) == "S", 5, "a 32-bit program that waits")
    one_line(stage.weft("attach", "--any", process.pid, check=False), "32-bit", "64-bit")
    assert process.poll() is None

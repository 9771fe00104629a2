# SPDX-License-Identifier: Apache-2.0
"""LD_PRELOAD: the library wakes in the one process that was named, and nowhere else."""
import json
import os
import subprocess

import processes
import pytest
from fixtures_load import look
from fixtures_probe import IDLE, memory, memory_path, state, threads

LIBRARY = processes.BUILD / "libweft_probe.so"
# Prints a line when it is up, waits for one to end.
WAITING = "import sys; print('up', flush=True); sys.stdin.readline()"
FORKING = """
import json, os, subprocess, sys
def look(pid):
    names = [open(f"/proc/{pid}/task/{t}/comm").read().strip() for t in os.listdir(f"/proc/{pid}/task")]
    links = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            links.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except OSError:
            pass
    return ["weft-probe" in names, any("weft-probe" in link for link in links)]
read, write = os.pipe()
if os.fork() == 0:
    os.write(write, json.dumps(look(os.getpid())).encode())
    os._exit(0)
os.wait()
forked = json.loads(os.read(read, 100))
started = subprocess.run([sys.executable, "-c", "import os; print(os.listdir('/proc/self/task').__len__())"],
                         capture_output=True, text=True, check=True)
print(json.dumps({"own": look(os.getpid()), "forked": forked, "started": int(started.stdout)}), flush=True)
"""


class Preloaded:
    """A command with the library preloaded; `named`: its own pid, another, or no variable."""

    def __init__(self, command, named):
        value = {"own": "WEFT_PROBE_PID=$$", "other": "WEFT_PROBE_PID=1", "none": ""}[named]
        script = f'exec env {value} LD_PRELOAD="$0" "$@"'
        environment = {key: text for key, text in os.environ.items() if key != "WEFT_PROBE_PID"}
        self.process = subprocess.Popen(["sh", "-c", script, str(LIBRARY), *map(str, command)], env=environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.communicate("\n", timeout=100)


@pytest.fixture(autouse=True)
def built():
    if not LIBRARY.exists():
        pytest.fail(f"{LIBRARY} is not built")


@pytest.mark.parametrize("named", ["none", "other"])
def test_dormant_touches_nothing(named, tmp_path):
    with Preloaded(["/usr/bin/python3", "-c", WAITING], named) as preloaded:
        assert preloaded.process.stdout.readline() == "up\n"
        pid = preloaded.process.pid
        assert memory_path(pid) is None
        assert threads(pid) == ["python3"]
        assert look(pid, "--save", tmp_path / "now").returncode == 0
        compared = look(pid, "--compare", tmp_path / "now")
        assert compared.returncode == 0, compared.stdout


def test_named_process_is_joined(tmp_path):
    with Preloaded(["/usr/bin/python3", "-c", WAITING], "own") as preloaded:
        assert preloaded.process.stdout.readline() == "up\n"
        pid = preloaded.process.pid
        assert state(pid) == (IDLE, 0)
        processes.wait_until(lambda: "weft-probe" in threads(pid), 2, "the parked thread")
        with memory(pid) as mapped:
            assert mapped[0x28:0x38].rstrip(b"\0") == b"cpython"
        assert look(pid, "--save", tmp_path / "now").returncode == 0
        compared = look(pid, "--compare", tmp_path / "now")
        assert compared.returncode == 1, "the check must see what is there"
        assert "slot python3" in compared.stdout and "thread" in compared.stdout and "memfd" in compared.stdout


def test_children_are_inert():
    """A forked child has neither thread nor memory; a started one stays dormant."""
    with Preloaded(["/usr/bin/python3", "-c", FORKING], "own") as preloaded:
        out = json.loads(preloaded.process.stdout.readline())
    assert out == {"own": [True, True], "forked": [False, False], "started": 1}


@pytest.mark.parametrize("version", [17, 25])
@pytest.mark.parametrize("named", ["own", "none"])
def test_java_starts_as_ever(jdk, version, named):
    with Preloaded([jdk(version) / "bin" / "java", "-version"], named) as preloaded:
        _, errors = preloaded.process.communicate(timeout=300)
    assert preloaded.process.returncode == 0
    assert f'version "{version}.' in errors, errors

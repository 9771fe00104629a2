# SPDX-License-Identifier: Apache-2.0
"""`weft doctor`: right about what joining then does, and nothing done meanwhile."""
import json
import os
import pathlib
import re

import processes
import pytest
import victims
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from fixtures_probe import memory_path

HOOKED = 20  # an object of a Python service has some; more than this together


def doctor(stage, *arguments, code=0):
    done = stage.weft("doctor", "--json", *arguments, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def socket_slots(path, names):
    """Slots of a file for these names, counted by another reader of ELF."""
    with open(path, "rb") as file:
        for segment in ELFFile(file).iter_segments():
            if isinstance(segment, DynamicSegment):
                symbols = list(segment.iter_symbols())
                tables = segment.get_relocation_tables()
                wanted = [(tables.get("JMPREL"), 7), (tables.get("RELA"), 6)]
                return sum(entry["r_info_type"] == kind and symbols[entry["r_info_sym"]].name in names
                           for table, kind in wanted if table for entry in table.iter_relocations())
    return 0


def probe_names():
    source = (processes.ROOT / "instance" / "probe" / "socket_calls.h").read_text(encoding="utf-8")
    aliases = (processes.ROOT / "instance" / "probe" / "socket_calls.c").read_text(encoding="utf-8")
    names = set(re.findall(r"^  XX \([\w *]+, (\w+),", source, re.M))
    return names | set(re.findall(r"^  XX \((__\w+), \w+\)", aliases, re.M)) | {"dlopen"}


def test_right_about_a_python_service(stage, controller):
    app = stage.app("http", "orders")
    processes.wait_until(lambda: victims.state(app.pid) == "S", 5, "an idle server")
    before = victims.inventory(app.pid), pathlib.Path(f"/proc/{app.pid}/maps").read_text(encoding="utf-8")
    said, = doctor(stage, app.pid)
    after = victims.inventory(app.pid), pathlib.Path(f"/proc/{app.pid}/maps").read_text(encoding="utf-8")
    assert before == after and memory_path(app.pid) is None, "nothing was done"
    assert said["vm"] == "cpython" and said["joinable"] and said["way_in"].startswith("ptrace"), said
    assert said["libc"] == "glibc" and said["listens"] == f":{app.port}" and said["namespaces"] == []
    own = next(one for one in said["objects"] if one["object"] == pathlib.Path(said["executable"]).name)
    assert own["slots"] == socket_slots(said["executable"], probe_names()) > HOOKED
    assert said["slots"] == sum(one["slots"] for one in said["objects"])
    assert any("TLS" in text for text in said["missed"]) == ("libssl" in before[1])
    stage.weft("attach", app.pid)
    stage.wait_listed(app.pid)
    left = stage.weft("detach", app.pid).stdout
    assert re.search(rf"verified: {said['slots']} of {said['slots']} call slots", left), left


def test_says_it_in_words(stage):
    app = stage.app("http", "orders")
    done = stage.weft("doctor", app.pid)
    for needed in (rf"process +{app.pid}, CPython 3", "namespaces +the same as ours", "rights .*CAP_SYS_PTRACE", "libc +glibc",
                   r"hooks +\d+ call slots in \d+ objects", "missed ", "prints +nothing", "verdict +can be joined: ptrace"):
        assert re.search(needed, done.stdout), f"{needed!r} is not in: {done.stdout}"


@pytest.mark.parametrize("version, prints", [(17, 0), (25, 1)])
def test_right_about_a_jvm(stage, controller, jdk, version, prints):
    jdk(version)
    app = stage.app("jvm", "orders", jdk=version)
    said, = doctor(stage, app.pid)
    assert said["joinable"] and said["way_in"] == "attach protocol" and "SIGQUIT" in said["signals"], said
    assert len(said["prints"]) == prints, said
    stage.weft("attach", app.pid)
    assert ("WARNING" in app.text()) == bool(prints), "the JDK says what the doctor said it would"
    said, = doctor(stage, app.pid)
    assert said["joined"]
    stage.wait_listed(app.pid)
    stage.weft("detach", app.pid)


@pytest.mark.parametrize("option, why", [("-XX:+DisableAttachMechanism", "DisableAttachMechanism"),
                                         ("-XX:-EnableDynamicAgentLoading", "EnableDynamicAgentLoading")])
def test_right_about_a_jvm_that_refuses(stage, jdk, option, why):
    jdk(17)
    app = stage.app("jvm", "orders", jdk=17, options=[option])
    said, = doctor(stage, app.pid, code=1)
    assert not said["joinable"] and why in said["why"] and "; " in said["why"], said
    assert "Full thread dump" not in app.text() and app.alive()


def test_right_about_what_is_in_the_way(stage, tmp_path):
    plain = victims.build(tmp_path)
    cases = [(plain, "uneven", "seccomp"), (victims.build(tmp_path, "-static", name="static"), "poll", "statically linked"),
             (plain, "poll", None)]
    for program, mode, why in cases:
        victim = victims.Victim(stage, program, mode)
        said, = doctor(stage, "--any", victim.pid, code=1 if why else 0)
        assert said["joinable"] == (why is None) and (why or "") in (said["why"] or ""), said
        victim.goes_on()
    said, = doctor(stage, victim.pid, code=1)
    assert "not a process VM" in said["error"]


@pytest.mark.skipif(os.geteuid() != 0, reason="missing: root")
def test_namespaces_that_differ(stage, tmp_path):
    victim = victims.Victim(stage, victims.build(tmp_path), "poll", prefix=["unshare", "--mount", "--net", "--uts"])
    said, = doctor(stage, "--any", victim.pid)
    assert said["namespaces"] == ["mnt", "net", "uts"], said


def test_the_host_and_everybody_on_it(stage):
    app = stage.app("http", "orders")
    done = stage.weft("doctor", "--json", check=False)
    host, *rest = map(json.loads, done.stdout.splitlines())
    assert host["uid"] == os.geteuid() and isinstance(host["capable"], bool) and "ptrace_scope" in host
    assert app.pid in [one["pid"] for one in rest]
    assert done.returncode == (0 if all(one["joinable"] for one in rest) else 1)


def test_nobody_there(stage):
    process = stage.start(["true"])
    process.wait()
    done = stage.weft("doctor", process.pid, check=False)
    assert done.returncode == 1 and "no process" in done.stderr and not done.stdout

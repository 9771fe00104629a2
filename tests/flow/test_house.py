# SPDX-License-Identifier: Apache-2.0
"""The checks that keep the tree in order notice what they are there for, and an installed
weft finds its parts."""
import os
import shutil
import subprocess

import processes
import pytest

SPDX = "/* SPDX-License-Identifier: Apache-2.0 */\n"
FAULTS = {
    "common/a.h": ('#include "../controller/task/task.h"\n', "common/ includes nothing above it"),
    "controller/view/a.h": ('#include "../cli/verbs.h"\n', "uses only rooms below it"),
    "controller/task/b.h": ('#include "../../instance/shm/layout.h"\n', "never include each other"),
    "instance/shm/a.h": ('#include "../sidecar/bus.h"\n', "includes no sidecar"),
    "instance/probe/a.h": ("#include <zmq.h>\n", "libc only"),
    "controller/task/a.h": ("#include <sqlite3.h>\n", "only store.c"),
    "controller/cli/a.h": ("#include <czmq.h>\n", "only the bus modules"),
    "common/c.h": ("int a;\n" * 800, "split it by concern"),
    "common/d.h": ("static void f (void)\n{\n" + "  g ();\n" * 100 + "}\n", "function of 100 lines"),
    "vendor/a.h": ("int a;\n", "not expected at the top"),
    "common/e.c": ("int a;\n", "declared in no header"),
}


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "scripts").mkdir()
    shutil.copy(processes.ROOT / "scripts" / "check-layers", tmp_path / "scripts")
    for path in ("controller/task/task.h", "controller/cli/verbs.h", "instance/shm/layout.h", "instance/sidecar/bus.h"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(SPDX)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def layers(tree):
    return subprocess.run([tree / "scripts" / "check-layers"], capture_output=True, text=True, check=False)


def test_an_orderly_tree_passes(tree):
    done = layers(tree)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", FAULTS)
def test_layers_notices(tree, path):
    text, why = FAULTS[path]
    (tree / path).parent.mkdir(parents=True, exist_ok=True)
    (tree / path).write_text(SPDX + text)
    done = layers(tree)
    assert done.returncode == 1 and why in done.stdout and path.split("/")[0] in done.stdout, done.stdout
    assert len(done.stdout.splitlines()) == 1, done.stdout


def test_layers_notices_a_missing_license_line(tree):
    (tree / "common").mkdir()
    (tree / "common" / "a.h").write_text("int a;\n")
    assert "SPDX" in layers(tree).stdout


def test_installed_weft_finds_its_parts(stage, controller):
    """`make install` into a folder; nothing of the build tree is needed to run a program."""
    build = os.path.relpath(processes.BUILD, processes.ROOT)
    subprocess.run(["make", "-s", "install", f"B={build}", f"DESTDIR={stage.directory}/root", "PREFIX=/usr"],
                   cwd=processes.ROOT, check=True, capture_output=True, timeout=300)
    weft = stage.directory / "root" / "usr" / "bin" / "weft"
    app = stage.start([weft, "run", "--service", "installed", "--", processes.PYTHON, "-c", "import time; time.sleep(600)"],
                      env=stage.env(), cwd="/")
    instance, = stage.wait_instances(1)
    assert (instance["service"], instance["pid"]) == ("installed", app.pid)
    with open(f"/proc/{app.pid}/maps", encoding="ascii") as maps:
        assert f"{stage.directory}/root/usr/lib/weft/libweft_probe-" in maps.read()

# SPDX-License-Identifier: Apache-2.0
"""The library that enters other people's processes: what it needs and what it shows."""
import re
import subprocess

import processes
import pytest

LIBRARY = processes.BUILD / "libweft_probe.so"


def readelf(option):
    if not LIBRARY.exists():
        pytest.fail(f"{LIBRARY} is not built")
    return subprocess.run(["readelf", "-W", option, LIBRARY], check=True, capture_output=True, text=True).stdout


def test_needs_libc_only():
    assert re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d")) == ["libc.so.6"]


def test_has_no_text_relocation_and_stays_loaded():
    dynamic = readelf("-d")
    assert "TEXTREL" not in dynamic
    assert "NODELETE" in dynamic, "a late call must find the code"
    assert "BIND_NOW" in dynamic or "NOW" in dynamic, "no lazy binding inside a hook"


def test_exports_only_the_agent_entries():
    defined = [line.split() for line in readelf("--dyn-syms").splitlines() if re.search(r"\bGLOBAL\b|\bWEAK\b", line)]
    names = {fields[7].split("@")[0] for fields in defined if fields[6] != "UND"}
    assert {"Agent_OnAttach", "Agent_OnLoad"} <= names
    assert names <= {"Agent_OnAttach", "Agent_OnLoad", "Agent_OnUnload", "probe_start"}, names


def test_imports_nothing_that_ends_or_prints():
    """It fails into a counter: no exit, no abort, no output, no assertion."""
    imported = {line.split()[7].split("@")[0] for line in readelf("--dyn-syms").splitlines()
                if re.search(r" UND +\S", line)}
    banned = {"abort", "exit", "_exit", "_Exit", "quick_exit", "__assert_fail", "raise", "printf", "fprintf", "puts",
              "perror", "syslog", "system", "popen", "__printf_chk", "__fprintf_chk"}
    assert not imported & banned

# SPDX-License-Identifier: Apache-2.0
"""The demo as a control of itself: with propagation broken on purpose its comparison must say so."""
import json
import subprocess

import processes


def demo(seed, *options):
    command = [processes.PYTHON, processes.ROOT / "tests" / "support" / "demo.py", "--json", "--seed", str(seed)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=600, check=False)
    lines = done.stdout.splitlines()
    assert len(lines) == 1, done.stderr
    return done.returncode, json.loads(lines[0]), done.stderr


def test_exact(stage, seed):
    status, numbers, text = demo(seed, "--requests", "40")
    assert status == 0, text
    assert numbers["tasks"] == numbers["complete"] == numbers["requests"] == 40
    assert numbers["wrong"] == numbers["orphans"] == numbers["lost"] == 0
    assert numbers["proven_hops"] == numbers["expected_hops"] > 40


def test_broken_propagation_is_noticed(stage, seed):
    status, numbers, text = demo(seed, "--requests", "40", "--break")
    assert status == 1
    assert numbers["complete"] < 40
    assert numbers["wrong"] > 0
    assert numbers["proven_hops"] < numbers["expected_hops"]
    assert "demo: task" in text

# SPDX-License-Identifier: Apache-2.0
"""Instructions that stand can be seen, and are not forgotten."""
import re


def test_ls_lists_what_stands(stage, controller):
    stage.app("http", "front", run=True)
    stage.wait_instances(1)
    stage.weft("instruct", "--on", "*", "--root", "service=front", "--match", "GET /x/*")
    lines = stage.weft("ls").stdout.splitlines()
    found = [re.split(r"  +", line.strip()) for line in lines[lines.index("") + 2:]]
    assert found == [["1", "root", "service=front", "GET /x/*", "1 of 1"],
                     ["2", "embed, capture", "*", "GET /x/*", "1 of 1"]]
    left = stage.weft("detach", "--all")
    assert "instructions 1, 2 still stand" in left.stderr
    stage.weft("stop", "1", "2")
    assert "INSTRUCTION" not in stage.weft("ls").stdout

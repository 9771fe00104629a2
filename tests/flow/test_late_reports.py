# SPDX-License-Identifier: Apache-2.0
"""What comes late joins its task, though the controller that took the rest was killed or ended."""
import os
import signal

import processes
import pytest
from reporter import CAPTURE, EMBED, MS, ROOT_FLAG, Reporter

START = 10**12


def root(reporter, task, number=1):
    reporter.add(CAPTURE, task, 0, number, START, START + 100 * MS, flags=ROOT_FLAG, instruction=1)


def subtask(reporter, task):
    """The other half: the request that subtask 1 sent, and who did it."""
    reporter.add(EMBED, task, 77, 1, START + MS, START + 9 * MS)
    reporter.add(CAPTURE, task, 77, 2, START + 2 * MS, START + 8 * MS)


def shown(stage, task):
    done = stage.weft("show", task.hex(), "--json", check=False)
    return stage.json("show", task.hex())[0] if done.returncode == 0 else None


def wait_for(stage, task, subtasks):
    def there():
        one = shown(stage, task)
        return one and len(one["subtasks"]) == subtasks and one

    return processes.wait_until(there, 20, "%d subtasks" % subtasks, 0.2)


def assert_whole(execution):
    assert execution["complete"] and execution["hops"]["proven"] == 1
    assert [each["parent"] for each in execution["subtasks"]] == [None, f"{1:016x}"]


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "ended"])
def test_after_a_death(stage, ending):
    task = os.urandom(16)
    controller = stage.controller()
    with Reporter(stage) as reporter:
        root(reporter, task)
        reporter.push()
        wait_for(stage, task, 1)
    controller.send_signal(ending)
    controller.wait(100)
    stage.controller()
    with Reporter(stage) as reporter:
        subtask(reporter, task)
    assert_whole(wait_for(stage, task, 2))

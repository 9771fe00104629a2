# SPDX-License-Identifier: Apache-2.0
"""A window without a task says in one line how many requests there were and why none began one."""
import os
import re
import signal
import time

from fixtures_chain import send
from fixtures_probe import sidecar_pid
from scenario import plan

NODE = plan.parse("orders~P~/checkout~s0~200~0~10")
COUNT = 23


def profile(stage, app, *options):
    """Its line on stderr, after COUNT requests, each on a connection of its own, while it was active."""
    run = stage.start_weft("profile", app.pid, "--for", "60s", *options)
    assert "instruction active in 1 of 1" in run.stderr.readline()
    for _ in range(COUNT):
        send(app, NODE)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=150)
    assert run.returncode == 1 and out == ""
    line, = [line for line in err.splitlines() if "no tasks" in line]
    return re.sub(r"in [0-9.]+ s", "in N s", line)


def test_a_mistyped_match(stage, controller):
    app = stage.app("http", "orders", run=True)
    stage.wait_instances(1)
    assert profile(stage, app, "--match", "POST /chekout") == \
        f"weft: no tasks in N s: orders saw {COUNT} requests, none matched 'POST /chekout'; try without --match"


def test_a_sample_that_draws_none(stage, controller):
    app = stage.app("http", "orders", run=True)
    stage.wait_instances(1)
    assert profile(stage, app, "--sample", "1/1000000000") == \
        f"weft: no tasks in N s: orders saw {COUNT} requests, none was drawn by --sample or --max; give it more " \
        "time, or draw more"


def test_no_request_at_all(stage, controller):
    app = stage.app("http", "orders", run=True)
    stage.wait_instances(1)
    done = stage.weft("profile", app.pid, "--for", "1s", check=False)
    assert done.returncode == 1 and "nothing was sent to or from orders; send it requests" in done.stderr


def test_one_that_is_late_is_heard(stage, controller):
    """Its sidecar cannot say in time what it saw; nobody says meanwhile that there was nothing."""
    app = stage.app("http", "orders", run=True)
    stage.wait_instances(1)
    sidecar = sidecar_pid(app.pid)
    run = stage.start_weft("profile", app.pid, "--for", "60s", "--match", "POST /chekout")
    assert "instruction active in 1 of 1" in run.stderr.readline()
    for _ in range(COUNT):
        send(app, NODE)
    os.kill(sidecar, signal.SIGSTOP)
    try:
        run.send_signal(signal.SIGINT)
        time.sleep(1.5)  # longer than a report takes (W1), not so long as one waits for an answer
    finally:
        os.kill(sidecar, signal.SIGCONT)
    out, err = run.communicate(timeout=150)
    assert run.returncode == 1 and out == ""
    assert f"orders saw {COUNT} requests, none matched" in err, err

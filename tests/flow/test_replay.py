# SPDX-License-Identifier: Apache-2.0
"""Record and replay: what is recorded is what came in, and a replay of it gives the same answers,
whole, in any order, multiplied, or as far as it can be read."""
import json
import signal
import subprocess

import processes
import pytest
import recording
import replays
from fixtures_chain import instruct, path_through, send


def script(name, *options, timeout=600):
    done = subprocess.run([processes.ROOT / "scripts" / name, *map(str, options)], capture_output=True, text=True,
                          timeout=timeout, check=False)
    print(done.stdout + done.stderr)
    return done


def test_regress():
    assert len(replays.all_recordings()) == 3
    done = script("replay-regress")
    assert done.returncode == 0, done.stdout


def test_regress_notices(tmp_path):
    """The same name, one batch less: its answer is another one."""
    path = replays.all_recordings()[0]
    head, frames = recording.read(path)
    batches = [frame for frame in frames if frame.kind == recording.BATCH]
    frames.remove(batches[len(batches) // 2])
    recording.write(tmp_path / path.name, head, frames)
    done = script("replay-regress", tmp_path / path.name)
    assert done.returncode == 1 and "DIFFERS" in done.stdout


def test_load():
    done = script("replay-load", "--instances", 60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["instances"] >= 60


@pytest.mark.parametrize("name", ["jdk17-chain", "jdk25-chain", "trouble"])
def test_chaos(seed, name):
    done = script("replay-chaos", "--seed", seed, replays.RECORDINGS / (name + ".weftr"))
    assert done.returncode == 0, done.stdout


def record_a_run(stage, path, requests=6):
    """Two services, one of them joined before the recording begins; what weft said of the run."""
    stage.controller()
    back = stage.app("http", "back", run=True)
    front = stage.app("http", "front", peers={"back": back.url}, run=True)
    stage.wait_instances(2)
    recorder = stage.start_weft("record", path)
    assert "recording to" in recorder.stderr.readline()
    instruct(stage, "--embed", "*", "--capture", "*")
    instruct(stage, "--root", "service=front")
    for _ in range(requests):
        send(front, path_through("front", "back"))
    processes.wait_until(lambda: sum(each["complete"] for each in stage.json("tasks", "--each")) >= requests, 10,
                         "%d whole tasks" % requests, 0.1)
    stage.weft("detach", "--all")
    return recorder


def without_places(lines):
    """Executions without what a replay gives other names to, in the order of their starts."""
    executions = replays.parse(lines)
    for execution in executions:
        for each in execution["subtasks"]:
            del each["instance"]
    return executions


def test_a_replay_tells_what_the_run_told(stage):
    path = stage.directory / "run.weftr"
    recorder = record_a_run(stage, path)
    live = stage.weft("tasks", "--each", "--json").stdout
    recorder.send_signal(signal.SIGINT)
    out, _ = recorder.communicate(timeout=60)
    assert recorder.returncode == 0 and out.startswith("recorded "), out
    kinds = {frame.kind for frame in recording.read(path)[1]}
    assert kinds == {recording.HELLO, recording.BATCH, recording.BYE}
    numbers, _, again = replays.of(path)
    assert numbers["tasks"] == 6 and numbers["instances"] == 2 and numbers["whole"]
    assert without_places(again) == without_places(live)
    # The journal directory holds the same.
    stage.weft("record", stage.directory / "journal.weftr", "--journal", stage.directory / "state/weft/weft.db.journal")
    assert replays.of(stage.directory / "journal.weftr")[2] == again
    # Into the controller that saw it live: not one task more, and nobody seems to be there.
    stage.weft("replay", path, "--speed", "max")
    assert without_places(stage.weft("tasks", "--each", "--json").stdout) == without_places(live)
    assert not stage.json("ls")
    listed = stage.json("ls", "--all")
    assert sorted(bool(each.get("replayed")) for each in listed) == [False, False, True, True]
    assert {each["presence"] for each in listed} == {"left"}
    # Nothing is written over.
    done = stage.weft("record", path, check=False)
    assert done.returncode == 1 and "it is there already" in done.stderr


def test_a_killed_recorder_leaves_what_it_has(stage):
    path = stage.directory / "killed.weftr"
    recorder = record_a_run(stage, path)
    settled = stage.weft("tasks", "--each", "--json").stdout
    # Both have been left: what is written last is that they said so.
    processes.wait_equal(lambda: [frame.kind for frame in recording.read(path)[1]].count(recording.BYE), 2, 10, "two farewells")
    recorder.kill()
    recorder.wait()
    assert without_places(replays.of(path)[2]) == without_places(settled)


def test_pace(stage):
    """Four times as fast as it was; and a Ctrl-C ends it at once."""
    stage.controller()
    path = replays.RECORDINGS / "jdk17-chain.weftr"
    frames = [frame for frame in recording.read(path)[1] if frame.kind == recording.BATCH]
    ends = [int.from_bytes(frame.data[96:104], "big") for frame in frames]
    seconds = (max(ends) - min(ends)) / 1e9
    numbers, = stage.json("replay", path, "--speed", "4")
    assert numbers["whole"] and numbers["seconds"] >= seconds / 4 - 0.1
    running = stage.start_weft("replay", path, "--speed", "0.01", "--json")
    processes.wait_until(lambda: processes.catches(running.pid, signal.SIGINT), 10, "one that can be ended")
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert json.loads(out)["whole"] is False, err


def test_repeats_of_a_seed(stage):
    stage.controller()
    path = replays.RECORDINGS / "trouble.weftr"
    one = replays.replay(stage, path, "--repeat", 3, "--seed", 7)
    before = replays.answers(stage)[1]
    again = replays.replay(stage, path, "--repeat", 3, "--seed", 7)
    assert one["tasks"] == again["tasks"] and replays.answers(stage)[1] == before
    other = replays.replay(stage, path, "--repeat", 3, "--seed", 8)
    assert other["tasks"] == one["tasks"]
    assert len(replays.parse(replays.answers(stage)[1])) == len(replays.parse(before)) // 3 * 5


@pytest.mark.parametrize("what, text", [("nothing", "cannot read"), ("text", "no recording"), ("empty", "no recording")])
def test_no_recording(stage, what, text):
    path = stage.directory / what
    if what != "nothing":
        path.write_text("#!/bin/sh\n" * 20 if what == "text" else "")
    done = stage.weft("replay", path, check=False)
    assert done.returncode == 1 and text in done.stderr and len(done.stderr.splitlines()) == 1

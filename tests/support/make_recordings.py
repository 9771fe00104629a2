# SPDX-License-Identifier: Apache-2.0
"""Makes the recordings below tests/recordings anew: real runs of the test applications, each a
few seconds long. `weft record` writes them; what would name this machine is then written over.

    make_recordings.py [NAME…]

After it the answers in tests/golden/replay are written with `scripts/replay-regress --write`."""
import http.client
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import msgpack
import processes
import recording
import scenario
from scenario import plan

RECORDINGS = processes.ROOT / "tests" / "recordings"
LOAD = processes.ROOT / "tests" / "support" / "load.py"


class Run:
    """A stage with a recorder beside it."""

    def __init__(self, stage, path):
        self.stage, self.path = stage, path
        path.unlink(missing_ok=True)
        stage.controller()
        self.recorder = stage.start_weft("record", path)
        line = self.recorder.stderr.readline()
        if "recording" not in line:
            raise processes.Failed("weft record: " + line)

    def start(self, kinds, names, jdk):
        """Services in a row, the last one first: whom each calls is there before it."""
        apps, peers = {}, {}
        for kind, name in reversed(list(zip(kinds, names))):
            apps[name] = self.stage.app(kind, name, peers=peers, run=True, jdk=jdk if kind == "jvm" else None)
            peers = {**peers, name: apps[name].url}
        self.stage.wait_instances(len(names))
        return apps

    def end(self):
        self.stage.weft("detach", "--all", check=False)
        time.sleep(1.5)
        self.recorder.send_signal(signal.SIGINT)
        out, _ = self.recorder.communicate(timeout=10)
        print("%s: %s" % (self.path.name, out.strip()))


def load(url, seed, requests):
    command = [processes.PYTHON, LOAD, "--seed", seed, "--requests", requests, "--parallel", 3, "--url", url]
    subprocess.run(list(map(str, command)), check=True, timeout=60)


def chain(stage, path, seed, jdk):
    """Requests as the demo draws them, through three services."""
    drawn = scenario.draw(seed)
    run = Run(stage, path)
    urls = {name: "http://127.0.0.1:%d" % port for name, port in zip(drawn.names, drawn.ports)}
    for name, kind, port in zip(drawn.names, drawn.kinds, drawn.ports):
        stage.app(kind, name, port, urls, run=True, jdk=jdk if kind == "jvm" else None)
    stage.wait_instances(3)
    stage.weft("instruct", "--embed", "*", "--capture", "*")
    stage.weft("instruct", "--root", "service=" + drawn.names[0])
    load(urls[drawn.names[0]], seed, 20)
    run.end()


def ask(app, node, number):
    connection = http.client.HTTPConnection("127.0.0.1", app.port, timeout=20)
    try:
        connection.request("GET", node.path + "?" + node.query(number, "0"))
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        pass
    finally:
        connection.close()


def node_of(*names, status=200):
    node = None
    for name in reversed(names):
        node = plan.Node(name, "G", "/" + name, "s3", status if name == names[-1] else 200, 0, 10, [node] if node else [])
    return node


UNASKED = """
import http.client, sys, time
time.sleep(2)
for target in sys.argv[2:]:
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=20)
    connection.request("GET", target)
    connection.getresponse().read()
    connection.close()
"""


def send_unasked(stage, app, requests):
    """A program under weft that sends requests although nobody asked it anything: orphans."""
    node = node_of(app.name)
    targets = [node.path + "?" + node.query(100 + n, "0") for n in range(requests)]
    command = [processes.BUILD / "weft", "run", "--service", "timer", "--", processes.PYTHON, "-c", UNASKED]
    stage.start([*command, app.port, *targets], env=stage.env(), cwd="/").wait(20)


def trouble(stage, path, seed, jdk):
    """Errors, requests that nobody was told to start a task for, and a VM killed in mid-run."""
    rng = random.Random(seed)
    run = Run(stage, path)
    apps = run.start(["flask", "jvm", "http"], ["front", "orders", "pricing"], jdk)
    stage.weft("instruct", "--embed", "*", "--capture", "*")
    stage.weft("instruct", "--root", "service=front")
    for number in range(1, 41):
        if number == 25:
            os.kill(apps["pricing"].pid, signal.SIGKILL)
        ask(apps["front"], node_of("front", "orders", "pricing", status=rng.choice([200, 200, 503])), number)
    send_unasked(stage, apps["orders"], 5)
    run.end()


MADE = {
    "jdk17-chain": (chain, 11, 17),
    "jdk25-chain": (chain, 12, 25),
    "trouble": (trouble, 13, 17),
}


def neutral(frame):
    """Without the name of the host that it was recorded on."""
    if frame.kind != recording.HELLO:
        return frame
    major, minor, kind, fields = msgpack.unpackb(frame.data, strict_map_key=False)
    return recording.Frame(msgpack.packb([major, minor, kind, {**fields, "host": "box"}]))


def main():
    RECORDINGS.mkdir(exist_ok=True)
    for name in sys.argv[1:] or MADE:
        make, seed, jdk = MADE[name]
        path = pathlib.Path(RECORDINGS / (name + ".weftr"))
        with processes.Stage(random.Random(seed)) as stage:
            make(stage, path, seed, jdk)
        head, frames = recording.read(path)
        recording.write(path, head, map(neutral, frames))
        path.chmod(0o644)
        print("%s: %d frames, %.1f KiB" % (path.name, len(frames), path.stat().st_size / 1024))


if __name__ == "__main__":
    main()

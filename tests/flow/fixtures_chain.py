# SPDX-License-Identifier: Apache-2.0
"""Three services in a row under weft, with a subscriber and a tap beside the buses."""
import contextlib
import dataclasses
import http.client
import itertools
import json
import re
import socket
import threading
import time

import processes
from listener import Listener
from scenario import plan
from subscriber import CAPTURE, EMBED, HELLO, Subscriber
from tap import Tap, tapped

NUMBERS = itertools.count(1)


@dataclasses.dataclass
class Chain:
    stage: object
    apps: dict
    tap: Tap
    subscriber: Subscriber

    def uuid(self, service):
        """The instance uuid that the service's sidecar said hello with."""
        wanted = self.tap.wait(lambda m: m[0] == HELLO and m[1]["service"] == service)
        return wanted[1]["instance"].hex()

    def reports(self, service, kind, task=None):
        uuid = self.uuid(service)
        return [r for r in self.tap.reports()
                if r["instance"] == uuid and r["kind"] == kind and task in (None, r["task"])]

    def logged(self, service, number):
        """The lines that the service itself wrote about request `number`."""
        lines = self.apps[service].log.read_text().splitlines()
        return [entry for entry in map(json.loads, lines) if entry["n"] == number]


@contextlib.contextmanager
def chain(stage, kinds, names, meddler=None, jdk=None):
    """Starts names[-1] first. Everything of weft is told the tap's address. `meddler` stands
    between the first and the second service."""
    stage.controller()
    with Subscriber(stage.address) as subscriber, tapped(stage) as tap:
        apps, peers = {}, {}
        for kind, name in reversed(list(zip(kinds, names))):
            apps[name] = stage.app(kind, name, peers=peers, run=True, jdk=jdk if kind == "jvm" else None)
            url = apps[name].url
            if meddler and name == names[1]:
                url = f"http://127.0.0.1:{meddler.towards(apps[name].port)}"
            peers = {name: url}
        stage.wait_instances(len(names))
        yield Chain(stage, apps, tap, subscriber)


def path_through(*names, work="s2"):
    """A plan that goes through the services in this order, once each."""
    node = None
    for name in reversed(names):
        node = plan.Node(name, "G", f"/{name}", work, 200, 0, 10, [node] if node else [])
    return node


def send(app, node, headers=None):
    """Sends one request from outside of every VM under weft; the number that services log."""
    number = next(NUMBERS)
    connection = http.client.HTTPConnection("127.0.0.1", app.port, timeout=60)
    connection.request("GET", node.path + "?" + node.query(number, "0"), headers=headers or {})
    answer = connection.getresponse()
    plan.check(node, number, "0", answer.status, answer.read())
    connection.close()
    return number


def instruct(stage, *arguments):
    """Broadcasts long-lived instructions and waits until they work; their numbers."""
    done = stage.weft("instruct", *arguments)
    numbers = [int(n) for n in re.findall(r"instruction (\d+)", done.stdout + done.stderr)]
    assert numbers, f"`weft instruct` names what it made: {done.stdout} {done.stderr}"
    return numbers


def executions(stage, wanted, seconds=15, **options):
    """Polls `weft tasks --each --json` until wanted(list) holds; the list."""
    def listed():
        found = stage.json("tasks", "--each", **options)
        return (found,) if wanted(found) else None
    return processes.wait_until(listed, seconds, "executions in `weft tasks --each`", 0.1)[0]


class Meddler(Listener):
    """A proxy between two services that alters what it forwards: alter(bytes) -> bytes."""

    def __init__(self, alter):
        self.alter, self.target = alter, None
        super().__init__()

    def towards(self, port):
        self.target = port
        return self.port

    def serve(self, client, begun):
        server = socket.create_connection(("127.0.0.1", self.target))
        threading.Thread(target=self.forward, args=(server, client, bytes), daemon=True).start()
        self.forward(client, server, self.alter)

    @staticmethod
    def forward(source, sink, alter):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(alter(data))
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


def settle(seconds=0.3):
    """Time for what must not happen to happen."""
    time.sleep(seconds)


__all__ = ["CAPTURE", "EMBED", "Chain", "Meddler", "chain", "executions", "instruct", "path_through", "send", "settle"]

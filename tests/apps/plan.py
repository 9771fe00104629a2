# SPDX-License-Identifier: Apache-2.0
"""What the Python services share: the call plan that a request carries, and the service's log.

    node := peer ~ kind ~ path ~ work ~ status ~ upload ~ answer [ "(" node { "," node } ")" ]

peer    name of the service that handles it
kind    G: GET with query, P: POST with Content-Length, C: POST in chunks; W: no request, the
        caller itself does the work between two calls
work    c<ms> burns CPU, s<ms> sleeps, l<ms> sleeps while it holds the service's one lock
status  what the service answers
upload  bytes of padding in the request body, 0 for G
answer  bytes of padding in the answer; odd: sent in chunks where the server can
"""
import argparse
import concurrent.futures
import dataclasses
import json
import os
import threading
import time
import urllib.parse


@dataclasses.dataclass
class Node:
    peer: str
    kind: str
    path: str
    work: str
    status: int
    upload: int
    answer: int
    children: list = dataclasses.field(default_factory=list)

    @property
    def method(self):
        return "GET" if self.kind == "G" else "POST"

    def text(self):
        own = "~".join(map(str, (self.peer, self.kind, self.path, self.work, self.status, self.upload, self.answer)))
        return own + ("(" + ",".join(child.text() for child in self.children) + ")" if self.children else "")

    def query(self, number, at):
        return urllib.parse.urlencode({"n": number, "at": at, "plan": self.text()}, safe="~/(),")

    def body(self, number, at):
        return json.dumps({"n": number, "at": at, "plan": self.text(), "pad": "x" * self.upload}).encode()


def parse(text):
    """The one node that `text` spells; ValueError for anything else."""
    node, end = _node(text, 0)
    if end != len(text):
        raise ValueError("text after the plan: %r" % text[end : end + 20])
    return node


def _node(text, at):
    end = at
    while end < len(text) and text[end] not in "(),":
        end += 1
    peer, kind, path, work, status, upload, answer = text[at:end].split("~")
    node = Node(peer, kind, path, work, int(status), int(upload), int(answer))
    if end < len(text) and text[end] == "(":
        separator = "("
        while separator in "(,":
            child, end = _node(text, end + 1)
            node.children.append(child)
            separator = text[end] if end < len(text) else ""
            if separator == "" or separator not in ",)":
                raise ValueError("a list of calls that does not end")
        end += 1
    return node, end


LOCK = threading.Lock()


def work(spec):
    seconds = int(spec[1:]) / 1000
    if spec[0] == "l":
        with LOCK:
            time.sleep(seconds)
        return
    if spec[0] == "s":
        time.sleep(seconds)
        return
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(200))


class Service:
    """One service: its name, its peers, its log. `call (node, number, at)` sends one
    request to a peer and returns (status, body)."""

    def __init__(self, call):
        parser = argparse.ArgumentParser()
        parser.add_argument("--name", required=True)
        parser.add_argument("--port", type=int, required=True)
        parser.add_argument("--log", required=True)
        parser.add_argument("--peer", action="append", default=[], metavar="NAME=URL")
        parser.add_argument("--workers", type=int, default=0, help="threads that serve; 0: one for each connection")
        options = parser.parse_args()
        self.name, self.port, self.workers = options.name, options.port, options.workers
        self.peers = dict(peer.split("=", 1) for peer in options.peer)
        self._call = call
        self._log = open(options.log, "a", encoding="utf-8")
        self._lock = threading.Lock()

    def pooled(self, server):
        """A threading socketserver whose connections wait for one of the workers, where there is such a
        number. Each connection has to end with its answer: one that is kept would keep its worker."""
        if self.workers:
            pool = concurrent.futures.ThreadPoolExecutor(self.workers)
            server.process_request = lambda *request: pool.submit(server.process_request_thread, *request)
        return server

    def handle(self, method, path, headers, fields):
        """Does what the request's plan says. Returns (status, answer, chunked)."""
        start_ns = time.time_ns()
        number, at, node = int(fields["n"]), fields["at"], parse(fields["plan"])
        if len(fields.get("pad", "")) != node.upload:
            raise ValueError("%d bytes of padding arrived, %d were sent" % (len(fields.get("pad", "")), node.upload))
        work(node.work)
        for index, child in enumerate(node.children):
            if child.kind == "W":
                work(child.work)
                continue
            child_at = "%s.%d" % (at, index)
            status, body = self._call(self, child, number, child_at)
            check(child, number, child_at, status, body)
        entry = {
            "n": number,
            "at": at,
            "service": self.name,
            "method": method,
            "route": path,
            "status": node.status,
            "start_ns": start_ns,
            "end_ns": time.time_ns(),
            "pid": os.getpid(),
            "traceparent": headers.get("traceparent"),
        }
        with self._lock:
            self._log.write(json.dumps(entry) + "\n")
            self._log.flush()
        answer = json.dumps({"n": number, "at": at, "service": self.name, "pad": "y" * node.answer})
        return node.status, answer.encode(), node.answer % 2 == 1


def check(node, number, at, status, body):
    """The answer must be the one to this very request, whole."""
    answer = json.loads(body)
    got = (status, answer["n"], answer["at"], answer["service"], answer["pad"])
    if got != (node.status, number, at, node.peer, "y" * node.answer):
        raise ValueError("request %d at %s: a wrong answer, %s" % (number, at, str(got)[:120]))


def in_chunks(data, size=1500):
    for start in range(0, len(data), size):
        yield data[start : start + size]

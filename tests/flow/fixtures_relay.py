# SPDX-License-Identifier: Apache-2.0
"""A relay under weft, asked from outside, and what it sends on."""
import itertools
import json
import re
import socket

NUMBERS = itertools.count(1)


def start_relay(stage, runtime, name="relay"):
    """`runtime`: cpython, jvm-17, jvm-25. Returns once it is an instance. Each call is made on a
    connection of its own: one from before an instruction would be followed only later."""
    kind, _, version = runtime.partition("-")
    jvm = kind == "jvm"
    app = stage.app("jvm-relay" if jvm else "relay", name, run=True, jdk=version or None,
                    options=["-Dhttp.keepAlive=false"] if jvm else [])
    stage.wait_instances(1)
    return app


def exchange(port, data, pieces=None):
    """All that comes back for these bytes, until the server closes; they are written in pieces of so many."""
    with socket.create_connection(("127.0.0.1", port), timeout=120) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(data), pieces or len(data)):
            client.sendall(data[at:at + (pieces or len(data))])
        answer = b""
        while part := client.recv(65536):
            answer += part
        return answer


def get(port, path, *lines):
    """Asks with these further lines in the head."""
    fields = "".join(line + "\r\n" for line in lines)
    return exchange(port, f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{fields}\r\n".encode())


class Relay:
    def __init__(self, app, peer):
        self.app, self.peer = app, peer

    def send(self, headers, calls=1, pieces=None, path="/relay", arguments=(), query=""):
        """The fields that arrive at the peer, for each call, when the relay is asked with these."""
        url = f"http://127.0.0.1:{self.peer.port}/called/{next(NUMBERS)}{query}"
        body = json.dumps([{"url": url, "arguments": list(arguments)}] * calls).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in headers)
        data = f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body
        answer = exchange(self.app.port, data, pieces)
        assert answer.startswith(b"HTTP/1.1 200 "), answer
        start = f"POST {url[url.index('/called'):]} ".encode()
        heads = self.peer.arrived(calls, lambda head: head.startswith(start))
        assert len(heads) == calls, (url, len(self.peer.heads), list(self.peer.heads)[-3:], answer)
        return [field_lines(head) for head in heads]


def field_lines(head, ours=True):
    """{lower-case name: [values]}. ours: weft wrote the trace context, in lower case."""
    fields = {}
    for line in head.decode("latin-1").split("\r\n")[1:-2]:
        name, value = line.split(":", 1)
        if ours and name.lower().startswith("trace"):
            assert name == name.lower()
        fields.setdefault(name.lower(), []).append(value.strip(" \t"))
    return fields


def context(fields):
    """(task, parent, flags, tracestate or None) of one head: one traceparent, at most one tracestate."""
    own, = fields["traceparent"]
    found = re.fullmatch(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})", own)
    assert found, f"no traceparent of version 00: {own!r}"
    assert found[1] != "0" * 32 and found[2] != "0" * 16
    assert len(fields.get("tracestate", [])) <= 1
    return found[1], found[2], found[3], fields.get("tracestate", [None])[0]

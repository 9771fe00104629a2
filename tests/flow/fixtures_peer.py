# SPDX-License-Identifier: Apache-2.0
"""A peer that writes down every byte it receives, and what to compare such bytes with."""
import json
import re
import time
import urllib.parse

from listener import Listener
from scenario import plan

TRACEPARENT = re.compile(rb"traceparent: 00-([0-9a-f]{32})-([0-9a-f]{16})-01\r\n")


class Connection:
    """What one client sent: its bytes, and the requests that they are, if any."""

    def __init__(self):
        self.raw = bytearray()
        self.requests = []  # (head, body) as received
        self.ended = False


class RecordingPeer(Listener):
    """Answers each whole HTTP/1.1 request with 200 and "ok", or as its call plan says; echoes
    lines that start with "PING"."""

    def __init__(self, port=0):
        self.connections = []
        self.heads = []  # of every request, in the order of arrival
        super().__init__(port)

    def arrived(self, count, wanted=lambda head: True, since=0, seconds=10):
        """The heads for which wanted(head) holds, once there are `count`; what there is, at the latest
        after so many seconds."""
        end = time.monotonic() + seconds
        while True:
            found = [head for head in list(self.heads)[since:] if wanted(head)]
            if len(found) >= count or time.monotonic() > end:
                return found
            time.sleep(0.01)

    def begin(self):
        self.connections.append(Connection())
        return self.connections[-1]

    def serve(self, client, begun):
        with client:
            reader = Reader(client, begun.raw)
            try:
                while self.one(client, reader, begun):
                    pass
            except (OSError, EOFError):
                pass
        begun.ended = True

    def one(self, client, reader, connection):
        line = reader.line()
        if line.startswith(b"PING"):
            client.sendall(line)
            return True
        head = line
        while line not in (b"\r\n", b"\n"):
            line = reader.line()
            head += line
        length = re.search(rb"(?mi)^content-length:\s*(\d+)", head)
        if re.search(rb"(?mi)^transfer-encoding:\s*chunked", head):
            body = reader.chunks()
        else:
            body = reader.exactly(int(length.group(1)) if length else 0)
        connection.requests.append((head, body))
        self.heads.append(head)
        answer = answer_to(head)
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(answer), answer))
        return b"connection: close" not in head.lower()


def answer_to(head):
    url = urllib.parse.urlsplit(head.split(b" ")[1].decode())
    fields = dict(urllib.parse.parse_qsl(url.query))
    if "plan" not in fields:
        return b"ok"
    node = plan.parse(fields["plan"])
    return json.dumps({"n": int(fields["n"]), "at": fields["at"], "service": node.peer, "pad": "y" * node.answer}).encode()


class Reader:
    """Takes lines and counts off a socket, keeping every byte in `raw`."""

    def __init__(self, client, raw):
        self.client, self.raw, self.at = client, raw, 0

    def more(self):
        data = self.client.recv(65536)
        if not data:
            raise EOFError
        self.raw += data

    def line(self):
        while (end := self.raw.find(b"\n", self.at)) < 0:
            self.more()
        return self.exactly(end + 1 - self.at)

    def exactly(self, size):
        while len(self.raw) - self.at < size:
            self.more()
        taken = bytes(self.raw[self.at:self.at + size])
        self.at += size
        return taken

    def chunks(self):
        body = b""
        while size := int(self.line().split(b";")[0], 16):
            body += self.exactly(size)
            self.line()
        while self.line() not in (b"\r\n", b"\n"):
            pass
        return body


def without_task(connection):
    """The connection's bytes with the one traceparent line of each request's head taken
    out again, and the (task id, request id) pairs. Fails if a head has not exactly one."""
    raw, pairs, at = bytes(connection.raw), [], 0
    for head, _ in connection.requests:
        start = raw.index(head, at)
        found = TRACEPARENT.findall(head)
        assert len(found) == 1, f"{len(found)} traceparent lines in {head!r}"
        pairs.append((found[0][0].decode(), found[0][1].decode()))
        bare = TRACEPARENT.sub(b"", head)
        raw = raw[:start] + bare + raw[start + len(head):]
        at = start + len(bare)
    return raw, pairs

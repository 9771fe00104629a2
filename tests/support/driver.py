# SPDX-License-Identifier: Apache-2.0
"""A client outside of weft that sends given bytes to a server and keeps every byte that comes
back, in the form that recorder.compare () takes."""
import re
import socket
import struct

from recorder import Body, Stream, noise

BODY = b"GET /inner HTTP/1.1\r\nHost: x\r\ntraceparent: none\r\n\r\n" * 60
DATE = re.compile(rb"(?mi)^(date: |last-modified: |etag: )[^\r]*")  # differ from run to run


class Talk:
    """One connection to a server; `items` is its recording."""

    def __init__(self, port):
        self.client = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream, self.items = Stream(self.client), []

    def answer(self, bodiless=False):
        """One message that came; its head."""
        head = line = self.stream.line()
        while line != b"\r\n":
            line = self.stream.line()
            head += line
        self.items.append(("sent", DATE.sub(rb"\1*", head)))
        body = Body()
        if not bodiless:
            body.read(self.stream, head)
        if body.size:
            self.items.append(body.item())
        return head

    def ask(self, data, status=b"200", **options):
        self.client.sendall(data)
        head = self.answer(**options)
        assert head.split(b" ")[1] == status, head
        return head

    def close(self):
        self.client.close()
        return self.items


def get(path, *fields):
    return b"\r\n".join((b"GET %s HTTP/1.1" % path, b"Host: x", *fields, b"", b""))


def thousand(port):
    talk = Talk(port)
    for i in range(1000):
        talk.ask(get(b"/k/%d?q=%d" % (i % 7, i)))
    return talk.close()


def uploads(port):
    """50 MB by length, 5 MB in chunks; bodies that consist of requests."""
    talk, data = Talk(port), noise(1_000_000)
    talk.client.sendall(b"PUT /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 50000000\r\n\r\n")
    for _ in range(50):
        talk.client.sendall(data)
    talk.answer()
    talk.client.sendall(b"PUT /upload HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(5):
        talk.client.sendall(b"f4240;x=y\r\n" + data + b"\r\n")
    talk.ask(b"0\r\nX-End: 1\r\n\r\n")
    for _ in range(5):
        talk.ask(b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY)
    return talk.close()


def shapes(port):
    """Writes of one byte, Expect, HEAD, an answer in chunks."""
    talk = Talk(port)
    whole = b"POST /drops HTTP/1.1\r\nHost: x\r\nContent-Length: 45\r\n\r\n" + BODY[:45]
    for i in range(len(whole)):
        talk.client.sendall(whole[i:i + 1])
    talk.answer()
    talk.ask(b"POST /expected HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 45\r\n\r\n",
             b"100", bodiless=True)
    talk.ask(BODY[:45])
    talk.ask(b"HEAD /head HTTP/1.1\r\nHost: x\r\n\r\n", bodiless=True)
    talk.ask(get(b"/pieces"))
    talk.ask(get(b"/after"))
    return talk.close()


def pipelined(port):
    """Twelve, then twenty requests in one write."""
    talk = Talk(port)
    for count in (12, 20):
        talk.client.sendall(b"".join(get(b"/p/%d" % i) for i in range(count)))
        for _ in range(count):
            talk.answer()
    return talk.close()


def files(port):
    talk = Talk(port)
    for _ in range(3):
        talk.ask(get(b"/static/large"))
        talk.ask(get(b"/static/small"))
        talk.ask(get(b"/after"))
    return talk.close()


def web_socket(port):
    talk = Talk(port)
    talk.ask(get(b"/ws", b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Version: 13",
                 b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="), b"101", bodiless=True)
    for size in (0, 1, 60, len(BODY)):
        length = bytes((0x80 | size,)) if size < 126 else b"\xfe" + struct.pack(">H", size)
        talk.client.sendall(b"\x82" + length + b"\0\0\0\0" + BODY[:size])
        head = talk.stream.exactly(2 + (2 if size >= 126 else 0))
        talk.items.append(("frame", head + talk.stream.exactly(size)))
        assert talk.items[-1][1].endswith(BODY[:size])
    return talk.close()

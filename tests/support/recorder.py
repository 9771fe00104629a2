# SPDX-License-Identifier: Apache-2.0
"""A peer that writes down every byte, both ways, on plain sockets and without weft; and what
two such recordings are compared by.

A connection's recording is a list of (kind, bytes) in the order in which they passed:

    head    of a request, with its blank line         sent     what the peer answered
    body    as it stood on the wire, or, beyond KEEP,  frame    of a WebSocket, with its mask taken off
            its length and hash                        tunnel   behind a CONNECT that was accepted

What the peer answers depends on the path (`ROUTES` below) and on nothing else.
"""
import base64
import hashlib
import random
import re
import socket
import threading

import sigv4
from listener import Listener

KEEP = 64 * 1024  # bytes of a body; what is longer is compared by its hash
TRACE = re.compile(rb"traceparent: 00-([0-9a-f]{32})-([0-9a-f]{16})-01\r\n\r\n\Z")
ANY_TRACE = re.compile(rb"(?mi)^(traceparent|weft-task)[ \t]*:")
KEY = re.compile(rb"(?mi)^(sec-websocket-key: *)\S+")
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Hash(bytes):
    """Stands for `size` bytes."""

    size = 0

    @classmethod
    def of(cls, hashed, size):
        made = cls(b"%d bytes, sha256 %s" % (size, hashed.hexdigest().encode()))
        made.size = size
        return made


class Gone(Exception):
    """The stream ended where a message may end."""


class Stream:
    """Takes lines and counts off a socket."""

    def __init__(self, client):
        self.client, self.buffer = client, bytearray()

    def more(self):
        data = self.client.recv(1 << 18)
        if not data:
            raise Gone if not self.buffer else EOFError("in the middle of %r" % bytes(self.buffer[:80]))
        self.buffer += data

    def some(self):
        if not self.buffer:
            self.more()
        taken, self.buffer = bytes(self.buffer), bytearray()
        return taken

    def exactly(self, size):
        while len(self.buffer) < size:
            self.more()
        taken = bytes(self.buffer[:size])
        del self.buffer[:size]
        return taken

    def line(self):
        while (end := self.buffer.find(b"\n")) < 0:
            self.more()
        return self.exactly(end + 1)


class Body:
    """What was read of a body: its bytes on the wire and the hash of its content."""

    def __init__(self):
        self.raw, self.size = bytearray(), 0
        self.wire = self.content = hashlib.sha256()

    def add(self, data, content=True):
        self.size += len(data)
        self.wire.update(data)
        if content and self.content is not self.wire:
            self.content.update(data)
        if self.size <= KEEP:
            self.raw += data

    def item(self):
        return ("body", bytes(self.raw) if self.size <= KEEP else Hash.of(self.wire, self.size))

    def read(self, stream, head):
        if re.search(rb"(?mi)^transfer-encoding:\s*chunked", head):
            self.content = hashlib.sha256()
            self.read_chunks(stream)
            return
        length = re.search(rb"(?mi)^content-length:\s*(\d+)", head)
        self.read_count(stream, int(length[1]) if length else 0)

    def read_count(self, stream, left):
        while left:
            if not stream.buffer:
                stream.more()
            data = stream.exactly(min(left, len(stream.buffer)))
            left -= len(data)
            self.add(data)

    def read_chunks(self, stream):
        while True:
            line = stream.line()
            self.add(line, False)
            size = int(line.split(b";")[0], 16)
            if not size:
                break
            self.read_count(stream, size)
            self.add(stream.exactly(2), False)
        while line not in (b"\r\n", b"\n"):
            line = stream.line()
            self.add(line, False)


def answer(status, body, fields=b""):
    return b"HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s" % (status, fields, len(body), body)


def noise(size):
    """The same bytes for the same size, and requests among them."""
    return (b"GET /inner HTTP/1.1\r\nHost: x\r\n\r\n" + random.Random(size).randbytes(size))[:size]


class Peer(Listener):
    """`connections` in the order of arrival."""

    def __init__(self):
        self.connections, self.faults = [], []
        self.open = 0
        self.changed = threading.Condition()
        super().__init__()

    def begin(self):
        items = []
        with self.changed:
            self.connections.append(items)
            self.open += 1
        return items

    def taken(self, seconds=60):
        """Waits until every connection has ended; their recordings. Starts anew."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.open == 0, seconds), "connections stay open"
            assert not self.faults, self.faults
            recorded, self.connections = self.connections, []
            return recorded

    def serve(self, client, begun):
        try:
            with client:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                Talk(client, begun).run()
        except (Gone, ConnectionError):
            pass
        except Exception as error:  # a thread's end would go unseen
            self.faults.append(repr(error))
        with self.changed:
            self.open -= 1
            self.changed.notify_all()


class Talk:
    """One connection."""

    def __init__(self, client, items):
        self.client, self.items, self.stream = client, items, Stream(client)

    def send(self, data):
        self.items.append(("sent", data if len(data) <= KEEP else Hash.of(hashlib.sha256(data), len(data))))
        self.client.sendall(data)

    def head(self):
        head = line = self.stream.line()
        if head.startswith(b"PING"):
            return head
        while line not in (b"\r\n", b"\n") or head == line:
            line = self.stream.line()
            head += line
        return head

    def run(self):
        while self.one():
            pass

    def one(self):
        head = self.head()
        self.items.append(("head", head))
        if head.startswith(b"CONNECT "):
            return self.connect(head)
        if re.search(rb"(?mi)^upgrade:\s*websocket", head):
            return self.websocket(head)
        if re.search(rb"(?mi)^expect:\s*100-continue", head):
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = Body()
        body.read(self.stream, head)
        if body.size:
            self.items.append(body.item())
        self.route(head, body)
        return not re.search(rb"(?mi)^connection:\s*close", head)

    def route(self, head, body):
        path = head.split(b" ")[1].split(b"?")[0].rsplit(b"/", 1)[-1]
        ROUTES.get(path, Talk.plain)(self, head, body)

    def plain(self, head, body):
        """The hash of what came, which the client can check."""
        text = body.content.hexdigest().encode()
        self.send(answer(b"200 OK", b"" if head.startswith(b"HEAD ") else text))

    def drops(self, head, body):
        """One byte at a time."""
        whole = answer(b"200 OK", body.content.hexdigest().encode(), b"X-Drops: 1\r\n")
        self.items.append(("sent", whole))
        for i in range(len(whole)):
            self.client.sendall(whole[i:i + 1])

    def chunked(self, head, body, trailer=b"X-End: 1\r\n"):
        """Chunks with extensions and a trailer, among them what looks like requests."""
        parts = [noise(n) for n in (1, 40, 700, 9000)]
        coded = b"".join(b'%x;name="v;x"\r\n%s\r\n' % (len(part), part) for part in parts)
        self.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%s0;last\r\n%s\r\n" % (coded, trailer))

    def chunks(self, head, body):
        """The same without a trailer, which java.net.http of JDK 17 does not take."""
        self.chunked(head, body, b"")

    def close(self, head, body):
        """An answer that lasts until the connection ends."""
        self.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + noise(5000))
        raise Gone

    def empty(self, head, body):
        self.send(b"HTTP/1.1 204 No Content\r\n\r\n")

    def large(self, head, body):
        self.send(answer(b"200 OK", noise(3_000_000)))

    def signed(self, head, body):
        good = sigv4.holds(head, body.content.hexdigest())
        self.send(answer(b"200 OK" if good else b"403 Forbidden", b"signature"))

    def connect(self, head):
        if b" denied:" in head:
            self.send(answer(b"407 Proxy Authentication Required", b"no"))
            return True
        self.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
        inner = Tunnel(self.client, self.items)
        inner.stream = self.stream
        inner.run()
        return False

    def websocket(self, head):
        key = re.search(rb"(?mi)^sec-websocket-key: *(\S+)", head)[1]
        token = base64.b64encode(hashlib.sha1(key + GUID).digest())
        self.items[-1] = ("head", KEY.sub(rb"\1*", head))
        self.items.append(("sent", b"101"))
        self.client.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            b"Sec-WebSocket-Accept: %s\r\n\r\n" % token)
        while self.frame():
            pass
        return False

    def frame(self):
        first, second = self.stream.exactly(2)
        assert second & 0x80, "a client's frame is masked"
        size, extra = second & 0x7F, b""
        if size >= 126:
            extra = self.stream.exactly(2 if size == 126 else 8)
            size = int.from_bytes(extra, "big")
        mask = self.stream.exactly(4)
        coded = self.stream.exactly(size)
        key = (mask * (size // 4 + 1))[:size]
        data = (int.from_bytes(coded, "big") ^ int.from_bytes(key, "big")).to_bytes(size, "big")
        self.items.append(("frame", bytes((first, second & 0x7F)) + extra + data))
        self.send(bytes((first, second & 0x7F)) + extra + data)
        return first & 15 != 8


class Tunnel(Talk):
    """What stands behind a proxy: requests that no one in between may touch."""

    def one(self):
        at = len(self.items)
        more = super().one()
        self.items[at:] = [("sent" if kind == "sent" else "tunnel", data) for kind, data in self.items[at:]]
        return more


ROUTES = {b"drops": Talk.drops, b"chunked": Talk.chunked, b"chunks": Talk.chunks, b"close": Talk.close, b"empty": Talk.empty,
          b"large": Talk.large, b"signed": Talk.signed}


# ---- comparing ----------------------------------------------------------------
def without_trace(head):
    """The head without its trace field, and the (task, request) ids; None where it has none.
    The field stands before the blank line, once."""
    names = ANY_TRACE.findall(head)
    if not names:
        return head, None
    found = TRACE.search(head)
    assert len(names) == 1 and found, "trace fields in %r" % head
    return head[:found.start()] + b"\r\n", (found[1], found[2])


def is_connect(head):
    return head.startswith(b"CONNECT ")


def compare(plain, marked, bare=is_connect):
    """Item by item. bare (head): whether it must not be marked, None where it may be either.
    Returns how many bytes and marked heads were compared."""
    assert len(plain) == len(marked), "%d connections, %d without weft" % (len(marked), len(plain))
    ids, size = [], 0
    for before, after in zip(plain, marked):
        assert len(before) == len(after), "%d messages, %d without weft" % (len(after), len(before))
        for (kind, data), (kind_now, now) in zip(before, after):
            assert kind == kind_now, (kind, data[:80], kind_now, now[:80])
            if kind == "head":
                assert not ANY_TRACE.search(data), "no weft, no trace"
                now, pair = without_trace(now)
                assert bare(data) in (None, pair is None), "%s: %r" % ("bare" if pair is None else "marked", data[:80])
                ids += [pair] if pair else []
            assert now == data, "%s differs: %r, without weft %r" % (kind, now[:300], data[:300])
            size += getattr(data, "size", len(data))
    assert len({request for _, request in ids}) == len(ids), "each request has an id of its own"
    return size, len(ids)


def spoil(recorded, rng, bare=is_connect):
    """One change of one byte, or one trace field too many: what `compare` is there to notice."""
    copy = [list(items) for items in recorded]
    at, place = rng.choice([(c, i) for c, items in enumerate(copy) for i, (_, data) in enumerate(items) if data])
    kind, data = copy[at][place]
    where = rng.randrange(len(data))
    if kind == "head" and bare(data) is not None and rng.random() < 0.5:
        line = b"traceparent: 00-%032x-%016x-01\r\n" % (rng.getrandbits(128), rng.getrandbits(64))
        cut = data.rindex(b"\r\n\r\n") + 2 if data.endswith(b"\r\n\r\n") else 0
        data = data[:cut] + line + data[cut:]
    elif kind == "head":
        # Inside the ids every digit is as good as another.
        found = TRACE.search(data)
        limit = found.start() if found else len(data)
        where %= limit
        data = data[:where] + bytes((data[where] ^ 1 << rng.randrange(7),)) + data[where + 1:]
    else:
        data = data[:where] + bytes((data[where] ^ 1 << rng.randrange(8),)) + data[where + 1:]
    copy[at][place] = kind, data
    return copy


def check(plain, marked, rng, **options):
    """compare (), and that it notices each of 40 changes; says what was seen."""
    size, heads = compare(plain, marked, **options)
    noticed = 0
    for _ in range(40):
        try:
            compare(plain, spoil(marked, rng, **options), **options)
        except AssertionError:
            noticed += 1
    print("%d bytes and %d marked heads on %d connections, 0 wrong; %d of 40 changes noticed"
          % (size, heads, len(plain), noticed))
    assert noticed == 40
    return heads

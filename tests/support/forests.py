# SPDX-License-Identifier: Apache-2.0
"""Random executions whose truth is known: as a recording, by what common/PROTOCOL.md says of it,
and as the spans that other tools must see. No line of weft's own code is used."""
import dataclasses
import struct
import time

import msgpack
import recording

CAPTURE, EMBED, OPAQUE = 1, 2, 4
ROOT, ORPHAN, OPEN = 1, 2, 8
ERRORS = ["", "refused", "timeout", "reset", "open", "closed"]
REASONS = {1: "no inbound request is open on the sending thread",
           2: "several inbound requests are open on the sending thread",
           3: "the sending thread is an event loop"}
SERVER, CLIENT = 2, 3  # span kinds
# One moment on both clocks, an hour ago: what is old is not kept for long.
BOOT_NS, REAL_NS = 5_000_000_000_000, (int(time.time()) - 3600) * 1_000_000_000
WALL = REAL_NS - BOOT_NS
NAMES = ["GET /orders", "POST /orders/{id}", "DELETE /carts/{uuid}/items/{id}", "PURGE /cache", "GET /"]
SERVICES = [("front", "cpython", "3.11.2"), ("orders", "jvm", "17.0.1"), ("größe", "node", ""), ("stock", "cpython", "")]


@dataclasses.dataclass
class Instance:
    uuid: bytes
    service: str
    vm: str
    version: str
    pid: int
    host: str
    boot: bytes = b"B" * 16  # its kernel
    ahead_ns: int = 0  # of its wall clock


@dataclasses.dataclass
class Span:
    """What a tracing backend must know of one span; None: nothing must be said."""
    task: bytes
    id: int
    parent: int
    kind: int
    name: str
    start_ns: int
    end_ns: int
    owner: Instance
    status: int = None
    error: str = None
    failed: bool = False
    peer: tuple = None
    orphan: str = None
    hop: str = None
    more: dict = dataclasses.field(default_factory=dict)
    links: list = dataclasses.field(default_factory=list)  # (span id, how it is related)


# ---- "As it is written" in PROTOCOL.md: a replay renames in place ---------------------


def u64(number):
    return struct.pack(">BQ", 0xCF, number)


def bin16(data):
    return b"\xc4\x10" + data


def as_string(text):
    data = text.encode()
    return b"\x92\x00\xd9" + bytes([len(data)]) + data


def as_report(fields):
    kind, flags, reason, error, status, instruction, tid, task, *numbers, cpu, local, peer, name = fields[:16]
    return (b"\xdc\x00" + bytes([len(fields), kind]) + struct.pack(">BI", 0xCE, flags) + bytes([reason, error])
            + struct.pack(">BHBIBI", 0xCD, status, 0xCE, instruction, 0xCE, tid) + bin16(task) + b"".join(map(u64, numbers))
            + (b"\xc0" if cpu is None else u64(cpu)) + b"".join(b"\xc4" + bytes([len(a or b"")]) + (a or b"") for a in (local, peer))
            + struct.pack(">BH", 0xCD, name) + b"".join(map(u64, fields[16:])))


def address(ip, port):
    return struct.pack(">BH", 4, port) + bytes(10) + b"\xff\xff" + bytes(map(int, ip.split(".")))


class Forest:
    """trees: how many task ids, depth: of the deepest. Everything else is drawn."""

    def __init__(self, rng, trees, depth=4):
        self.rng, self.depth = rng, depth
        self.instances = [Instance(rng.randbytes(16), *service, rng.randrange(2, 99999), rng.choice(["box1", "box2"]))
                          for service in SERVICES]
        self.copies = []  # (instance, the 16 or 20 fields of a report, its name still a text)
        self.spans = {}  # (task, id): Span
        self.tops = {}  # task: (id of the span that stands at the top, "task" or "orphan")
        for _ in range(trees):
            self.add_tree(rng.randbytes(16))

    def by_task(self):
        found = {}
        for (task, _), span in self.spans.items():
            found.setdefault(task, []).append(span)
        return found

    # ---- drawing -----------------------------------------------------------------

    def _id(self):
        return self.rng.randrange(1, 1 << 64)

    def _report(self, instance, kind, flags, task, request, subtask, start, end, name, *, reason=0, error=0, status=0,
                cpu=None, peer=None, opaque=()):
        fields = [kind, flags, reason, error, status, 0, 1, task, request, subtask, start, end, cpu, None, peer, name]
        self.copies.append((instance, fields + list(opaque)))

    def _span(self, span):
        self.spans[span.task, span.id] = span
        return span

    def add_tree(self, task):
        rng = self.rng
        start, name = BOOT_NS + rng.randrange(10**9), rng.choice(NAMES)
        end, top, instance = start + rng.randrange(10**6, 10**9), self._id(), rng.choice(self.instances)
        status = rng.choice([200, 200, 404, 503])
        if rng.random() < 0.3:
            self._orphan(task, instance, start, end, name, status)
            return
        self._report(instance, CAPTURE, ROOT, task, 0, top, start, end, name, status=status, cpu=rng.choice([None, 5000]))
        self._served(task, top, 0, name, start, end, instance, status, hop="root")
        self.tops[task] = top, "task"
        self._children(task, top, instance, start, end, 0)

    def add_far_call(self, task, ahead_ns, network_ns):
        """One request to a host whose clock is ahead; spans in true times."""
        near, far = self.instances[:2]
        far.boot, far.ahead_ns, far.host = b"C" * 16, ahead_ns, "far"
        name, start, end, top, request, subtask = NAMES[0], BOOT_NS, BOOT_NS + 90_000_000, self._id(), self._id(), self._id()
        sent, answered = start + 10_000_000, end - 10_000_000
        self._report(near, CAPTURE, ROOT, task, 0, top, start, end, name, status=200)
        self._report(near, EMBED, 0, task, request, top, sent, answered, name, status=200)
        self._report(far, CAPTURE, 0, task, request, subtask, sent + network_ns, answered - network_ns, name, status=200)
        return [self._span(Span(task, *rest, owner=owner)) for owner, *rest in (
            (near, top, 0, SERVER, name, start, end), (near, request, top, CLIENT, name, sent, answered),
            (far, subtask, request, SERVER, name, sent + network_ns, answered - network_ns))]

    def _orphan(self, task, instance, start, end, name, status):
        rng = self.rng
        sender, request, subtask, reason = rng.choice(self.instances), self._id(), self._id(), rng.choice(list(REASONS))
        self._report(sender, EMBED, ORPHAN, task, request, 0, start, end, name, reason=reason, status=status)
        self._report(instance, CAPTURE, 0, task, request, subtask, start + 10, end - 10, name, status=status)
        # Which instance of that service it was, no execution says.
        owner = dataclasses.replace(sender, uuid=None, pid=None, vm="", version="", host="")
        self._span(Span(task, request, 0, CLIENT, name, start, end, owner, status=status, failed=status >= 400,
                        orphan=REASONS[reason], hop="proven"))
        self._served(task, subtask, request, name, start + 10, end - 10, instance, status, hop="proven", orphan=REASONS[reason])
        self.tops[task] = request, "orphan"
        self._children(task, subtask, instance, start + 10, end - 10, 1)

    def _served(self, task, subtask, request, name, start, end, instance, status, **more):
        return self._span(Span(task, subtask, request, SERVER, name, start, end, instance, status=status or None,
                               failed=status >= 500, **more))

    def _children(self, task, caller, instance, start, end, depth):
        rng = self.rng
        if depth >= self.depth or end - start < 2000:
            return
        for _ in range(rng.choice([0, 1, 1, 2, 4])):
            sent = rng.randrange(start, end - 1000)
            answered = rng.randrange(sent + 1000, end + 1)
            kinds = [self._proven, self._proven, self._proven, self._twice, self._leaf, self._opaque]
            # Without a top of its own the tree would begin where somebody outside is to blame.
            kind = rng.choice(kinds + [self._lost] * (self.tops[task][1] == "task"))
            kind(task, caller, instance, sent, answered, depth)

    def _embed(self, task, caller, instance, sent, answered, name, request, status, error=0, peer=None):
        self._report(instance, EMBED, 0, task, request, caller, sent, answered, name, error=error, status=status, peer=peer)
        return self._span(Span(task, request, caller, CLIENT, name, sent, answered, instance, status=None if error else status,
                               error=ERRORS[error] or None, failed=bool(error) or status >= 400, hop="proven"))

    def _proven(self, task, caller, instance, sent, answered, depth, times=1):
        rng = self.rng
        name, request, status = rng.choice(NAMES), self._id(), rng.choice([200, 201, 404, 500])
        self._embed(task, caller, instance, sent, answered, name, request, status, error=rng.choice([0, 0, 0, 2]))
        served = []
        for _ in range(times):
            other, subtask = rng.choice(self.instances), self._id()
            begun, done = sent + rng.randrange(100), answered - rng.randrange(100)
            self._report(other, CAPTURE, 0, task, request, subtask, begun, done, name, status=status)
            served.append(self._served(task, subtask, request, name, begun, done, other, status, hop="proven"))
            self._children(task, subtask, other, begun, done, depth + 1)
        for span in served:
            span.links = [(other.id, "same_request") for other in served if other is not span]

    def _twice(self, task, caller, instance, sent, answered, depth):
        """One request that reached two: a mirror, a retry below HTTP."""
        self._proven(task, caller, instance, sent, answered, depth, times=2)

    def _lost(self, task, caller, instance, sent, answered, depth):
        """The sender's report never came."""
        rng = self.rng
        other, subtask, request, name = rng.choice(self.instances), self._id(), self._id(), rng.choice(NAMES)
        self._report(other, CAPTURE, 0, task, request, subtask, sent, answered, name, status=200)
        self._served(task, subtask, request, name, sent, answered, other, 200, hop="capture_only")

    def _leaf(self, task, caller, instance, sent, answered, depth):
        rng = self.rng
        name, request, port = rng.choice(NAMES), self._id(), rng.randrange(1, 65536)
        error = rng.choice([0, 0, 1, 2, 3, 5])
        span = self._embed(task, caller, instance, sent, answered, name, request, 0 if error else 204, error,
                           address("203.0.113.7", port))
        span.hop, span.peer = "embed_only", ("203.0.113.7", port)

    def _opaque(self, task, caller, instance, sent, answered, depth):
        rng = self.rng
        request, calls, protocol = self._id(), rng.randrange(1, 50), rng.choice(["postgresql", "redis", "tcp"])
        error, waited = rng.choice([0, 0, 2]), rng.randrange(answered - sent)
        sizes = rng.randrange(10**6), rng.randrange(10**6)
        self._report(instance, OPAQUE, 0, task, request, caller, sent, answered, protocol, error=error,
                     peer=address("10.1.2.3", 5432), opaque=(calls, *sizes, waited))
        self._span(Span(task, request, caller, CLIENT, protocol, sent, answered, instance, error=ERRORS[error] or None,
                        failed=bool(error), peer=("10.1.2.3", 5432), hop="opaque",
                        more={"weft.calls": calls, "weft.bytes_out": sizes[0], "weft.bytes_in": sizes[1],
                              "weft.wait_ns": waited}))

    # ---- as a recording ----------------------------------------------------------

    def _hello(self, instance, start):
        return recording.Frame(msgpack.packb([1, 1, recording.HELLO, {
            "instance": instance.uuid, "start": start, "boot": instance.boot, "epoch": 1, "pid": instance.pid, "vm": instance.vm,
            "service": instance.service, "version": instance.version, "host": instance.host}]))

    @staticmethod
    def _batch(instance, start, number, reports):
        names, entries = {}, []
        for fields in reports:
            if fields[15] not in names:
                names[fields[15]] = len(names)
                entries.append(as_string(fields[15]))
            entries.append(as_report(fields[:15] + [names[fields[15]]] + fields[16:]))
        head = (bytes([0x9D, 1, 1, recording.BATCH]) + bin16(instance.uuid) + bin16(start) + bin16(instance.boot) + u64(number)
                + b"\x92" + u64(BOOT_NS) + u64(REAL_NS + instance.ahead_ns) + u64(BOOT_NS) + u64(BOOT_NS + 10**9)
                + struct.pack(">BI", 0xCE, len(reports)) + b"\x98" + 8 * u64(0) + struct.pack(">BI", 0xDD, len(entries)))
        return recording.Frame(head + b"".join(entries))

    def write(self, path, reports=100):
        """reports: of a batch."""
        self.rng.shuffle(self.copies)
        frames = []
        for number, instance in enumerate(self.instances):
            start, mine = bytes([number + 1]) * 16, [fields for one, fields in self.copies if one is instance]
            frames.append(self._hello(instance, start))
            for at in range(0, len(mine), reports):
                frames.append(self._batch(instance, start, at // reports + 1, mine[at:at + reports]))
        rest = struct.pack("<16sQQ", b"B" * 16, BOOT_NS, REAL_NS)
        head = struct.pack("<IIII", recording.HEAD_MAGIC, 1, recording.HEAD.size, recording.crc32c(rest)) + rest
        recording.write(path, head, frames)

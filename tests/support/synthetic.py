# SPDX-License-Identifier: Apache-2.0
"""Recordings of executions that never ran: call trees of any shape, with times, names and errors
that a test chooses, in the form that common/PROTOCOL.md gives a recording. No line of weft's own
code is used."""
import dataclasses
import hashlib
import struct
import time

import msgpack
import recording

CAPTURE, EMBED, OPAQUE = 1, 2, 4
ROOT = 1
ERRORS = {"": 0, "refused": 1, "timeout": 2, "reset": 3, "closed": 5}
MS = 1_000_000
BOOT = 1_000_000_000_000
BOOT_ID = b"\x42" * 16
WIRE_NS = 100_000  # each way


@dataclasses.dataclass
class Call:
    """A subtask from `start` to `end` ms of the execution; opaque: what was asked of `peer`."""

    service: str
    name: str
    start: float
    end: float
    children: list = dataclasses.field(default_factory=list)
    status: int = 200
    error: str = ""
    opaque: bool = False
    calls: int = 1
    captured: bool = True


class Recording:
    """`real_ns`: when it began; a minute ago, because a store lets go of what is old."""

    def __init__(self, seed=1, real_ns=None):
        self.tasks, self.ids, self.reports = 0, seed << 40, {}
        self.real = real_ns or time.time_ns() - 60_000 * MS

    def id(self):
        self.ids += 1
        return self.ids

    def add(self, root, at_ms=0.0, task=None, instruction=1):
        """One execution that begins `at_ms` after the recording; the hex of its task id."""
        self.tasks += 1
        task = task or hashlib.sha256(b"%d" % self.tasks).digest()[:16]
        begin = BOOT + int(at_ms * MS)

        def when(ms):
            return begin + int(ms * MS)

        def put(service, *report):
            self.reports.setdefault(service, []).append(report)

        stack = [(root, 0, None, None)]
        while stack:
            call, request, sender, sender_subtask = stack.pop()
            start, end = when(call.start), when(call.end)
            if call.opaque:
                put(sender, OPAQUE, 0, 0, ERRORS[call.error], 0, 0, 1, task, self.id(), sender_subtask, start, end, None, None,
                    address(call.service), call.name, call.calls, 120 * call.calls, 900 * call.calls, end - start)
                continue
            if sender is not None:
                put(sender, EMBED, 0, 0, ERRORS[call.error], 0 if call.error else call.status, 0, 1, task, request, sender_subtask,
                    start - WIRE_NS, end + WIRE_NS, None, None, None, call.name)
            if not call.captured:
                continue
            subtask = self.id()
            put(call.service, CAPTURE, ROOT if sender is None else 0, 0, ERRORS[call.error] if sender is None else 0, call.status,
                instruction if sender is None else 0, 1, task, request, subtask, start, end, (end - start) // 4, None, None, call.name)
            for child in reversed(call.children):
                stack.append((child, self.id(), call.service, subtask))
        return task.hex()

    def write(self, path):
        head = recording.HEAD.pack(recording.HEAD_MAGIC, 1, recording.HEAD.size, 0, BOOT_ID, BOOT, self.real)
        head = head[:12] + struct.pack("<I", recording.crc32c(head[16:])) + head[16:]
        frames = []
        for number, (service, reports) in enumerate(sorted(self.reports.items()), 1):
            instance, start = bytes([number]) * 16, bytes([number + 100]) * 16
            frames.append(recording.Frame(msgpack.packb([1, 1, 1, {
                "instance": instance, "start": start, "boot": BOOT_ID, "epoch": 1, "pid": 1000 + number, "vm": "cpython",
                "service": service, "version": "3.11.2", "host": "box", "listens": ":%d" % (8000 + number)}])))
            frames += [recording.Frame(data) for data in batches(instance, start, self.real, reports)]
        recording.write(path, head, frames)
        return path


def address(text):
    """"10.0.0.5:5432" as 19 bytes: family, port, address."""
    if not text:
        return None
    host, port = text.rsplit(":", 1)
    return struct.pack(">BH", 4, int(port)) + b"\0" * 10 + b"\xff\xff" + bytes(map(int, host.split(".")))


def put_report(kind, flags, reason, error, status, instruction, tid, task, request, subtask, start, end, cpu, local, peer, name, *opaque):
    """As a sidecar writes it: every field in its one width."""
    data = b"\xdc\x00" + bytes([0x14 if opaque else 0x10, kind, 0xCE]) + struct.pack(">IBBB", flags, reason, error, 0xCD)
    data += struct.pack(">HBIBI", status, 0xCE, instruction, 0xCE, tid) + b"\xc4\x10" + task
    for number in (request, subtask, start, end):
        data += struct.pack(">BQ", 0xCF, number)
    data += b"\xc0" if cpu is None else struct.pack(">BQ", 0xCF, cpu)
    for each in (local, peer):
        data += b"\xc4\x00" if each is None else b"\xc4\x13" + each
    data += struct.pack(">BH", 0xCD, name)
    return data + b"".join(struct.pack(">BQ", 0xCF, number) for number in opaque)


def put_batch(instance, start, number, real, reports):
    strings, entries = {}, []
    for report in reports:
        name = report[15]
        if name not in strings:
            strings[name] = len(strings)
            text = name.encode() if isinstance(name, str) else name
            entries.append(b"\x92\x00\xd9" + bytes([len(text)]) + text)
        entries.append(put_report(*report[:15], strings[name], *report[16:]))
    data = b"\x9d\x01\x01\x04" + b"".join(b"\xc4\x10" + each for each in (instance, start, BOOT_ID))
    data += struct.pack(">BQ", 0xCF, number) + b"\x92" + struct.pack(">BQBQ", 0xCF, BOOT, 0xCF, real)
    data += struct.pack(
        ">BQBQBI", 0xCF, min(each[10] for each in reports), 0xCF, max(each[11] for each in reports), 0xCE, len(reports))
    data += b"\x98" + (b"\xcf" + bytes(8)) * 8
    return data + struct.pack(">BI", 0xDD, len(entries)) + b"".join(entries)


def batches(instance, start, real, reports, most=180):
    """Each with strings of its own, and well below what a batch may hold."""
    for number, first in enumerate(range(0, len(reports), most), 1):
        yield put_batch(instance, start, number, real, reports[first:first + most])

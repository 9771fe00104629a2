# SPDX-License-Identifier: Apache-2.0
"""reporter: an instance that reports whatever a test wants, straight into the controller's PULL
socket. Written by common/PROTOCOL.md ("Batch, as it is written"); no line of weft's own code is used."""
import os
import struct

import zmq
from subscriber import CAPTURE, EMBED, ROOT_FLAG, endpoint  # noqa: F401

MS = 10**6
BATCH_MAX = 65536
WALL = 1_700_000_000 * 10**9  # wall minus boot, unless an instance has a clock of its own


def report(kind, task, request, subtask, start_ns, end_ns, flags=0, name=0, status=200, instruction=0, error=0,
           local=None, peer=None):
    head = struct.pack(">3sBBIBBBHBIBI", b"\xdc\x00\x10", kind, 0xCE, flags, 0, error, 0xCD, status, 0xCE, instruction,
                       0xCE, 1)
    ids = struct.pack(">2s16sBQBQBQBQBQ", b"\xc4\x10", task, 0xCF, request, 0xCF, subtask, 0xCF, start_ns, 0xCF, end_ns,
                      0xCF, 1000)
    return head + ids + address(local) + address(peer) + struct.pack(">BH", 0xCD, name)


def address(one):
    """None, or (last byte of 10.0.0.x, port)."""
    if not one:
        return b"\xc4\x00"
    return b"\xc4\x13\x04" + struct.pack(">H", one[1]) + bytes(10) + b"\xff\xff\x0a\0\0" + bytes([one[0]])


class Reporter:
    """Collects reports of one instance and pushes them in batches."""

    def __init__(self, stage, names=("GET /x",), boot=b"B" * 16, real_ns=WALL, uuid=None):
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.PUSH)
        self.socket.connect(endpoint(stage.address, "reports"))
        self.uuid, self.start, self.boot, self.real_ns = uuid or os.urandom(16), os.urandom(16), boot, real_ns
        self.number, self.names, self.waiting, self.size = 0, names, [], 0

    def add(self, *args, **options):
        self.add_bytes(report(*args, **options))

    def add_bytes(self, data):
        if self.size + len(data) > BATCH_MAX - 2000 or len(self.waiting) == 4000:
            self.push()
        self.waiting.append(data)
        self.size += len(data)

    def push(self):
        if not self.waiting:
            return
        self.number += 1
        strings = b"".join(b"\x92\x00\xd9" + bytes([len(name)]) + name.encode() for name in self.names)
        entries = len(self.names) + len(self.waiting)
        head = (b"\x9d\x01\x01\x04" + b"".join(b"\xc4\x10" + each for each in (self.uuid, self.start, self.boot))
                + struct.pack(">BQ", 0xCF, self.number) + b"\x92" + struct.pack(">BQBQ", 0xCF, 0, 0xCF, self.real_ns)
                + struct.pack(">BQBQ", 0xCF, 0, 0xCF, 10**15) + struct.pack(">BI", 0xCE, len(self.waiting))
                + b"\x98" + struct.pack(">BQ", 0xCF, 0) * 8 + struct.pack(">BI", 0xDD, entries))
        self.socket.send(head + strings + b"".join(self.waiting))
        self.waiting, self.size = [], 0

    def close(self):
        self.push()
        self.socket.close(linger=120_000)
        self.context.term()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

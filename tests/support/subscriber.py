# SPDX-License-Identifier: Apache-2.0
"""subscriber: a pair of eyes beside the instances, on both buses.

Decodes what crosses by the grammar in common/PROTOCOL.md and nothing else: no
line of weft's own codec is used, so the two can disagree.
"""
import threading
import time

import msgpack
import processes
import zmq

HELLO, ACK, BYE, BATCH = 1, 2, 3, 4
HEARTBEAT, STATE, BATCH_ACK, LEAVE = 1, 2, 3, 4
STRING, CAPTURE, EMBED, BARE, OPAQUE = 0, 1, 2, 3, 4
ROOT_FLAG, ORPHAN_FLAG = 0x01, 0x02

REPORT_FIELDS = ("kind", "flags", "reason", "error", "status", "instruction", "tid", "task", "request",
                 "subtask", "start_ns", "end_ns", "cpu_ns", "local", "peer", "name",
                 "calls", "bytes_out", "bytes_in", "wait_ns")  # the last four of OPAQUE alone
BATCH_FIELDS = ("major", "minor", "kind", "instance", "start", "boot", "number", "anchor", "from_ns", "to_ns",
                "reports", "losses", "entries")


def decode_batch(frame):
    """A batch frame as a dict; its entries as a list of report dicts, names resolved."""
    fields = msgpack.unpackb(frame, strict_map_key=False)
    batch = dict(zip(BATCH_FIELDS, fields))
    names, reports = [], []
    for entry in batch["entries"]:
        if entry[0] == STRING:
            names.append(entry[1])
        elif entry[0] in (CAPTURE, EMBED, BARE, OPAQUE):
            report = dict(zip(REPORT_FIELDS, entry))
            report["name"] = names[report["name"]]
            report["task"] = report["task"].hex()
            report["instance"] = batch["instance"].hex()
            report["local"], report["peer"] = address(report["local"]), address(report["peer"])
            reports.append(report)
    batch["entries"] = reports
    assert len(reports) == batch["reports"], "a batch says how many reports it holds"
    return batch


def address(packed):
    """(ip, port) of 19 packed bytes: family, port big-endian, 16 bytes of address."""
    if not packed:
        return None
    family, port = packed[0], int.from_bytes(packed[1:3], "big")
    if family == 4:
        return ".".join(map(str, packed[-4:])), port
    return packed[3:].hex(), port


class Recorder:
    """A thread that keeps what arrives, with its arrival time; `wait` for what should."""

    def __init__(self):
        self.seen = []
        self.stopping, self.ready = threading.Event(), threading.Event()
        self.thread = None

    def start(self):
        """Returns when it listens: who finds nobody at an address may begin a controller there."""
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        assert self.ready.wait(10 * processes.PATIENCE), "it does not listen"
        return self

    def stop(self):
        self.stopping.set()
        self.thread.join(5 * processes.PATIENCE)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def wait(self, wanted, timeout=5.0 * processes.PATIENCE):
        """The first recorded item for which wanted(item) holds; fails after timeout."""
        limit = time.monotonic() + timeout
        while True:
            for item in list(self.seen):
                if wanted(item):
                    return item
            assert time.monotonic() < limit, f"did not cross in {timeout} s; seen: {self.seen[-20:]}"
            time.sleep(0.01)


class Subscriber(Recorder):
    """Everything on the instruction bus: (topic, message) pairs."""

    def __init__(self, base):
        super().__init__()
        self.endpoint = endpoint(base, "instructions")

    def run(self):
        context = zmq.Context()
        socket = context.socket(zmq.SUB)
        socket.linger = 0
        socket.subscribe(b"")
        socket.connect(self.endpoint)
        self.ready.set()
        while not self.stopping.is_set():
            if socket.poll(50):
                topic, body = socket.recv_multipart()
                self.seen.append((topic.decode(), msgpack.unpackb(body, strict_map_key=False)))
        context.destroy(linger=0)

    def instructions(self):
        """Every instruction that crossed, by its number (the last form of each)."""
        return {i["number"]: i for _, m in list(self.seen) if m["kind"] == STATE for i in m["instructions"]}


def endpoint(base, name):
    """Mirrors PROTOCOL.md, "Addresses"."""
    if base.startswith("ipc://"):
        return f"{base}/{name}"
    host, port = base.rsplit(":", 1)
    return f"{host}:{int(port) + ('control', 'instructions', 'reports').index(name)}"

# SPDX-License-Identifier: Apache-2.0
"""tap: a proxy between sidecars and the controller that writes down what passes.

Sidecars and clients are given the tap's address; it forwards all three sockets
to the real controller, byte for byte, and keeps a copy of every report frame.
`cut()` stops forwarding (a network that went away), `mend()` resumes.
"""
import contextlib
import queue

import msgpack
import zmq

from subscriber import ACK, BATCH, BYE, HELLO, Recorder, decode_batch, endpoint


class Tap(Recorder):
    """seen: (kind, content) of every frame on the report bus, in order."""

    def __init__(self, here, real):
        super().__init__()
        self.here, self.real = here, real
        self.frames = []
        self.cutting = False
        self.injected = queue.SimpleQueue()

    def inject(self, *parts):
        """Sends a message of the test's own down to the sidecars."""
        self.injected.put(list(parts))

    def cut(self):
        self.cutting = True

    def mend(self):
        self.cutting = False

    def reports(self):
        """Every report once: a batch that was not acknowledged in time is pushed again."""
        batches = {(b["instance"], b["start"], b["number"]): b for kind, b in list(self.seen) if kind == BATCH}
        return [report for batch in batches.values() for report in batch["entries"]]

    def messages(self, kind):
        return [m for k, m in list(self.seen) if k == kind]

    def note(self, frame):
        fields = msgpack.unpackb(frame, strict_map_key=False)
        kind = fields[2]
        assert kind in (HELLO, ACK, BYE, BATCH), f"unknown kind {kind} on the report bus"
        self.frames.append(frame)
        self.seen.append((kind, decode_batch(frame) if kind == BATCH else fields[3]))

    def run(self):
        context = zmq.Context()

        def socket(kind, name, bind):
            made = context.socket(kind)
            made.linger = 0
            (made.bind if bind else made.connect)(endpoint(self.here if bind else self.real, name))
            return made

        downs_in, downs_out = socket(zmq.XSUB, "instructions", False), socket(zmq.XPUB, "instructions", True)
        ups_in, ups_out = socket(zmq.PULL, "reports", True), socket(zmq.PUSH, "reports", False)
        clients = socket(zmq.ROUTER, "control", True)
        behind = {}  # client identity -> its own connection to the controller
        poller = zmq.Poller()
        for each in (downs_in, downs_out, ups_in, clients):
            poller.register(each, zmq.POLLIN)
        self.ready.set()
        while not self.stopping.is_set():
            while not self.injected.empty():
                downs_out.send_multipart(self.injected.get())
            for ready, _ in poller.poll(50):
                parts = ready.recv_multipart()
                if self.cutting and ready is not downs_out:
                    continue
                if ready is downs_in:
                    downs_out.send_multipart(parts)
                elif ready is downs_out:
                    downs_in.send_multipart(parts)
                elif ready is ups_in:
                    self.note(parts[-1])
                    ups_out.send_multipart(parts)
                elif ready is clients:
                    if parts[0] not in behind:
                        behind[parts[0]] = socket(zmq.DEALER, "control", False)
                        poller.register(behind[parts[0]], zmq.POLLIN)
                    behind[parts[0]].send_multipart(parts[1:])
                else:
                    identity = next(i for i, s in behind.items() if s is ready)
                    clients.send_multipart([identity] + parts)
        context.destroy(linger=0)


@contextlib.contextmanager
def tapped(stage):
    """A tap before the stage's controller; everything that is started meanwhile is told its address."""
    real, stage.address = stage.address, f"ipc://{stage.directory}/tap"
    (stage.directory / "tap").mkdir(mode=0o700)
    with Tap(stage.address, real) as tap:
        yield tap
    stage.address = real

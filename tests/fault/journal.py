# SPDX-License-Identifier: Apache-2.0
"""A journal directory, read by the grammar of common/PROTOCOL.md and nothing else."""
import contextlib
import pathlib
import struct

import msgpack

HELLO, BATCH = 1, 4
CAPTURE, EMBED, BARE = 1, 2, 3


class Batch:
    def __init__(self, frame):
        fields = msgpack.unpackb(frame, raw=True, strict_map_key=False)
        self.instance, self.start, self.number = fields[3], fields[4], fields[6]
        self.reports, self.losses = fields[10], fields[11]
        self.tasks = [entry[7] for entry in fields[12] if entry[0] in (CAPTURE, EMBED, BARE)]
        if len(self.tasks) != self.reports:
            raise ValueError("batch %d says %d reports and holds %d" % (self.number, self.reports, len(self.tasks)))

    @property
    def key(self):
        return self.instance, self.start, self.number


def records(path):
    """Every whole record of one segment; a mark or a torn tail ends it."""
    path = pathlib.Path(path)
    data = path.read_bytes()
    at = 0
    while at + 16 <= len(data):
        magic, size, _, segment = struct.unpack_from("<4sIII", data, at)
        if magic != b"WJR1" or size == 0 or segment != int(path.stem) or at + 16 + size > len(data):
            return
        yield data[at + 16:at + 16 + size]
        at += 16 + (size + 7) // 8 * 8


def add_batches(path, found):
    """The distinct batches of one segment, first of each name: what a controller keeps."""
    for frame in records(path):
        if frame[0] == 0x9D and frame[3] == BATCH:
            batch = Batch(frame)
            found.setdefault(batch.key, batch)


def size(directory):
    total = 0
    for path in pathlib.Path(directory).glob("*.weftj"):
        with contextlib.suppress(FileNotFoundError):  # its time has come meanwhile
            total += path.stat().st_size
    return total

# SPDX-License-Identifier: Apache-2.0
"""The file that `weft record` writes, read and written by what common/PROTOCOL.md says of it
("Recording", "Journal", "Batch, as it is written"); no line of weft's own code is used."""
import dataclasses
import struct

import msgpack

HEAD = struct.Struct("<IIII16sQQ")  # magic, version, head size, crc32c, boot, boot_ns, real_ns
RECORD = struct.Struct("<IIII")  # magic, size, crc32c, reserved
HEAD_MAGIC, RECORD_MAGIC = 0x31435257, 0x31524A57
HELLO, ACK, BYE, BATCH = 1, 2, 3, 4


def _table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = _table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


@dataclasses.dataclass(frozen=True)
class Frame:
    data: bytes

    @property
    def kind(self):
        return self.data[3] if len(self.data) > 3 else 0

    def message(self):
        """The map of a HELLO or BYE."""
        return msgpack.unpackb(self.data, strict_map_key=False)[3]

    # Of a batch, at the places that are drawn in PROTOCOL.md.
    @property
    def instance(self):
        return self.data[6:22]

    @property
    def start(self):
        return self.data[24:40]

    @property
    def number(self):
        return int.from_bytes(self.data[59:67], "big")


def total(size):
    """Bytes of a record of a frame of `size` bytes."""
    return RECORD.size + (size + 7) // 8 * 8


def record(frame):
    padding = total(len(frame.data)) - RECORD.size - len(frame.data)
    return RECORD.pack(RECORD_MAGIC, len(frame.data), crc32c(frame.data), 0) + frame.data + bytes(padding)


def read(path):
    """(head, frames) of a file that is whole; ValueError: it is not, or not yet."""
    with open(path, "rb") as file:
        data = file.read()
    magic, version, size, crc, _, _, _ = HEAD.unpack(data[:HEAD.size].ljust(HEAD.size, b"\0"))
    if magic != HEAD_MAGIC or version != 1 or size < HEAD.size or crc != crc32c(data[16:size]):
        raise ValueError(f"no head: {data[:size]!r}")
    at, frames = size, []
    while at < len(data):
        magic, length, crc, _ = RECORD.unpack(data[at:at + RECORD.size].ljust(RECORD.size, b"\0"))
        frame = Frame(data[at + RECORD.size:at + RECORD.size + length])
        if magic != RECORD_MAGIC or crc != crc32c(frame.data):
            raise ValueError(f"no record at byte {at}")
        frames.append(frame)
        at += total(length)
    return data[:size], frames


def write(path, head, frames):
    with open(path, "wb") as file:
        file.write(head + b"".join(map(record, frames)))


def reports(data):
    """Where the reports of a batch begin in its bytes, and where each ends."""
    (entries,) = struct.unpack_from(">I", data, 183)
    at, found = 187, []
    for _ in range(entries):
        if data[at] == 0x92:  # a string
            at += 4 + data[at + 3]
            continue
        assert data[at:at + 3] == b"\xdc\x00\x10"
        end = at + (79 if data[at + 78] == 0xC0 else 87)
        for _ in range(2):
            end += 2 + data[end + 1]
        found.append((at, end + 3))
        at = end + 3
    assert at == len(data)
    return found

# SPDX-License-Identifier: Apache-2.0
"""chaos: makes of a recording what a network, a disk or a clock could make of it, drawn from a
seed, and says what a replay must then find. Knows the file by common/PROTOCOL.md alone."""
import dataclasses
import struct

import msgpack
import recording

SAME, SUBSET, TREES, ALIVE = "same bytes", "no other parents", "same trees", "no crash"


@dataclasses.dataclass
class Harm:
    data: bytes
    promise: str  # what the answer must have in common with that of the unharmed file
    expect: dict = dataclasses.field(default_factory=dict)  # numbers of `weft replay --json`


def whole(head, frames):
    return head + b"".join(map(recording.record, frames))


def holes(frames):
    """Batch numbers that are missing between those that are there."""
    numbers = {}
    for frame in frames:
        if frame.kind == recording.BATCH:
            numbers.setdefault((frame.instance, frame.start), set()).add(frame.number)
    return sum(max(each) - min(each) + 1 - len(each) for each in numbers.values())


def counts(frames):
    batches = [frame for frame in frames if frame.kind == recording.BATCH]
    distinct = {(frame.instance, frame.start, frame.number): frame for frame in batches}
    return {"batches": len(distinct), "repeated": len(batches) - len(distinct), "missing": holes(frames),
            "reports": sum(len(recording.reports(frame.data)) for frame in distinct.values())}


def reorder(rng, head, frames):
    frames = frames[:]
    rng.shuffle(frames)
    return Harm(whole(head, frames), SAME, {**counts(frames), "damaged": 0})


def duplicate(rng, head, frames):
    frames = frames + rng.choices(frames, k=len(frames) // 3)
    rng.shuffle(frames)
    return Harm(whole(head, frames), SAME, {**counts(frames), "damaged": 0})


def drop(rng, head, frames):
    share = rng.choice([0.02, 0.1, 0.5])
    frames = [frame for frame in frames if frame.kind != recording.BATCH or rng.random() >= share]
    return Harm(whole(head, frames), SUBSET, {**counts(frames), "damaged": 0})


def skew(rng, head, frames):
    """Every instance on a host of its own, whose clocks are minutes or hours off."""
    hosts = {}

    def host_of(instance):
        return hosts.setdefault(instance, (rng.randbytes(16), rng.randrange(-7200, 7200) * 10**9))

    def moved(frame):
        if frame.kind == recording.HELLO:
            message = msgpack.unpackb(frame.data, strict_map_key=False)
            message[3]["boot"], _ = host_of(message[3]["instance"])
            return recording.Frame(msgpack.packb(message))
        if frame.kind != recording.BATCH:
            return frame
        boot, shift = host_of(frame.instance)
        data = bytearray(frame.data)
        data[42:58] = boot
        (real,) = struct.unpack_from(">Q", data, 78)
        struct.pack_into(">Q", data, 78, real + shift)
        return recording.Frame(bytes(data))

    frames = list(map(moved, frames))
    return Harm(whole(head, frames), TREES, {**counts(frames), "damaged": 0})


def truncate(rng, head, frames):
    data = whole(head, frames)
    cut = rng.randrange(len(head), len(data))
    kept, at = [], len(head)
    for frame in frames:
        at += recording.total(len(frame.data))
        if at <= cut:
            kept.append(frame)
    torn = cut - len(whole(head, kept))
    return Harm(data[:cut], SUBSET, {**counts(kept), "damaged": int(torn > 0), "damaged_bytes": torn})


def flip(rng, head, frames):
    """Bits anywhere behind the head. What a checksum covers is lost with its record, and counted."""
    data = bytearray(whole(head, frames))
    bits = [rng.randrange(len(head) * 8, len(data) * 8) for _ in range(rng.choice([1, 5, 40]))]
    for bit in bits:
        data[bit // 8] ^= 1 << bit % 8
    sound = bytes(whole(head, frames))
    kept, lost_bytes, places, at, before = [], 0, 0, len(head), False
    for frame in frames:
        size = recording.total(len(frame.data))
        covered = [*range(at, at + 12), *range(at + 16, at + 16 + len(frame.data))]
        lost = data[at:at + size] != sound[at:at + size] and any(data[i] != sound[i] for i in covered)
        if lost:
            lost_bytes += size
            places += not before
        else:
            kept.append(frame)
        before = lost
        at += size
    return Harm(bytes(data), SUBSET, {**counts(kept), "damaged": places, "damaged_bytes": lost_bytes})


def forge(rng, head, frames):
    """Bits inside frames, with checksums that are right again: nobody's accident."""
    forged = []
    for frame in frames:
        data = bytearray(frame.data)
        if rng.random() < 0.3:
            for _ in range(rng.choice([1, 3, 30])):
                bit = rng.randrange(len(data) * 8)
                data[bit // 8] ^= 1 << bit % 8
        forged.append(recording.Frame(bytes(data)))
    return Harm(whole(head, forged), ALIVE)


HARMS = {harm.__name__: harm for harm in (reorder, duplicate, drop, skew, truncate, flip, forge)}

# SPDX-License-Identifier: Apache-2.0
"""The memory that a probe shares, read from outside: an independent reader of what
instance/shm/layout.h draws. The descriptor is held open, so what a dead VM left can be read.
"""
import contextlib
import glob
import mmap
import os
import struct

CONTROL, STATUS, RINGS, DATA, SPOOL = 0x1000, 0x2000, 0x3000, 0x10000, 0x410000
RING_COUNT, RING_SIZE, RING_HEAD = 64, 65536, 512
SPOOL_SLOTS, SPOOL_HEAD, SPOOL_SLOT = 64, 64, 64 + 65536
LEASE_AT, SIDECAR_AT, INSTANCE_AT = CONTROL + 32, CONTROL + 40, CONTROL + 2480
BATCH_LAST_AT, TOLD_AT = CONTROL + 2496, CONTROL + 2504
ACTIONS_AT, LOST_AT, LOSSES = STATUS + 8, STATUS + 40, 8
RING_FULL, RING_BUSY, SPOOL_FULL, OWNER_DIED = 0, 1, 2, 6


PENDING_AT = CONTROL + 2632
PENDING_TAILS_AT, PENDING_TOLD_AT = PENDING_AT + 8, PENDING_AT + 8 + 8 * RING_COUNT


class Memory:
    def __init__(self, pid):
        for path in glob.glob("/proc/%d/fd/*" % pid):
            with contextlib.suppress(OSError):  # closed meanwhile
                if os.readlink(path).startswith("/memfd:weft-probe") and os.stat(path).st_size:
                    break
        else:
            raise FileNotFoundError("no probe's memory in %d" % pid)
        descriptor = os.open(path, os.O_RDONLY)
        self.map = mmap.mmap(descriptor, os.fstat(descriptor).st_size, prot=mmap.PROT_READ)
        os.close(descriptor)

    def close(self):
        self.map.close()

    def u32(self, at):
        return struct.unpack_from("<I", self.map, at)[0]

    def u64(self, at):
        return struct.unpack_from("<Q", self.map, at)[0]

    def start(self):
        return self.map[24:40]

    def instance(self):
        return self.map[INSTANCE_AT:INSTANCE_AT + 16]

    def sidecar(self):
        return self.u64(SIDECAR_AT)

    def lease_until_ns(self):
        return self.u64(LEASE_AT)

    def actions(self):
        return self.u32(ACTIONS_AT)

    def lost(self):
        """What the probe counted as lost, by cause."""
        return list(struct.unpack_from("<%dQ" % LOSSES, self.map, LOST_AT))

    def written(self):
        """Records ever written into rings."""
        return sum(self.u64(RINGS + n * RING_HEAD + 16) for n in range(RING_COUNT))

    def untold(self):
        """Of the losses that the probe counted, those that no sealed batch has told."""
        at = PENDING_TOLD_AT if self._pending_holds() else TOLD_AT
        told = struct.unpack_from("<%dQ" % LOSSES, self.map, at)
        return sum(mine - theirs for mine, theirs in zip(self.lost(), told))

    def held(self):
        """Rings that somebody borrows: a writer that died there may have counted a record that it did not finish."""
        return sum(self.u32(RINGS + n * RING_HEAD) != 0 for n in range(RING_COUNT))

    def _pending_holds(self):
        """A sidecar died between the sealing of a batch and what follows from it (L6)."""
        number = self.u64(PENDING_AT)
        return number > self.u64(BATCH_LAST_AT) and any(number == one for one, _ in self.spool())

    def unread(self):
        """Records in rings that nobody has read."""
        return sum(self._unread(n) for n in range(RING_COUNT))

    def _unread(self, n):
        head, tail = self.u64(RINGS + n * RING_HEAD + 8), self.u64(RINGS + n * RING_HEAD + 128)
        if self._pending_holds():
            tail = self.u64(PENDING_TAILS_AT + 8 * n)
        if head - tail > RING_SIZE:
            raise ValueError("ring %d: head %d, tail %d" % (n, head, tail))
        count = 0
        while tail < head:
            at = DATA + n * RING_SIZE + tail % RING_SIZE
            size, kind = struct.unpack_from("<IB", self.map, at)
            if size < 8 or size % 8:
                raise ValueError("ring %d: a record of %d bytes" % (n, size))
            count += kind != 0
            tail += size
        return count

    def spool(self):
        """The sealed batches that wait here, as (number, bytes)."""
        found = []
        for slot in range(SPOOL_SLOTS):
            at = SPOOL + slot * SPOOL_SLOT
            number, size = struct.unpack_from("<QI", self.map, at)
            if number:
                found.append((number, self.map[at + SPOOL_HEAD:at + SPOOL_HEAD + size]))
        return found

# SPDX-License-Identifier: Apache-2.0
"""What is in the memory that a probe shares, read (or spoilt) from outside.

Offsets are those drawn in instance/shm/layout.h; written down again here, so that a
change of the layout shows.
"""
import contextlib
import glob
import mmap
import os
import struct

CONTROL, STATUS, RINGS, DATA, SPOOL = 0x1000, 0x2000, 0x3000, 0x10000, 0x410000
IDLE, ACTIVE, LEAVING, LEFT = 1, 2, 3, 4


def memory_path(pid):
    """The probe's memfd among the process's descriptors; None when there is none, or none that has its size yet."""
    for path in glob.glob(f"/proc/{pid}/fd/*"):
        with contextlib.suppress(OSError):
            if os.readlink(path).startswith("/memfd:weft-probe") and os.stat(path).st_size:
                return path
    return None


class NoProbe(Exception):
    """The process has no probe: not yet, no longer, or it is gone itself."""


@contextlib.contextmanager
def memory(pid):
    path = memory_path(pid)
    try:
        descriptor = os.open(path, os.O_RDWR) if path else None
    except OSError:  # it went between the two
        descriptor = None
    if descriptor is None:
        raise NoProbe(f"process {pid} has no memory of a probe")
    try:
        with mmap.mmap(descriptor, os.fstat(descriptor).st_size) as mapped:
            yield mapped
    finally:
        os.close(descriptor)


def state(pid):
    """(state, actions in force) as the probe says; (0, 0), which none says, where there is no probe."""
    with contextlib.suppress(NoProbe), memory(pid) as mapped:
        word, _, actions = struct.unpack_from("<III", mapped, STATUS)
        return word, actions
    return 0, 0


def sidecar_pid(pid):
    """Its sidecar; 0 where there is no probe."""
    with contextlib.suppress(NoProbe), memory(pid) as mapped:
        return struct.unpack_from("<Q", mapped, CONTROL + 40)[0]
    return 0


def spoil_rings(pid, rng):
    """Garbage over every ring head and all ring data, as a stray write would leave it."""
    with memory(pid) as mapped:
        mapped[RINGS:DATA] = rng.randbytes(DATA - RINGS)
        mapped[DATA:SPOOL] = rng.randbytes(SPOOL - DATA)


def threads(pid):
    names = []
    for path in glob.glob(f"/proc/{pid}/task/*/comm"):
        with contextlib.suppress(OSError):
            with open(path, encoding="ascii") as comm:
                names.append(comm.read().strip())
    return names

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An independent look at a process: what stands in the GOT slots of every loaded object.

    got_check.py PID --save FILE       writes down what is there
    got_check.py PID --compare FILE    prints what differs from then; exit 1 if anything of weft is left

Knows ELF and /proc, and no line of weft. What it refuses: a slot that points into
libweft_probe, or holds neither its old value nor (once lazy) its bound target, or lies on a
page of another protection; a thread named weft-probe; a memfd or a mapping of weft's but the
library itself; a new timer; another signal disposition.
"""
import argparse
import contextlib
import glob
import json
import os
import struct
import sys

PT_LOAD, PT_DYNAMIC = 1, 2
DT_PLTRELSZ, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_RELASZ, DT_STRSZ, DT_PLTREL, DT_JMPREL = 2, 5, 6, 7, 8, 10, 20, 23
GLOB_DAT, JUMP_SLOT = 6, 7
LIBRARY, MEMORY, THREAD = "libweft_probe", "memfd:weft-probe", "weft-probe"
PAGE = 4096
# Signals 32 and 33 are no application's: libc gives 33 a handler when a process makes its first thread.
OF_LIBC = 0x180000000


class Mapping:
    def __init__(self, line):
        fields = line.split(None, 5)
        self.start, self.end = (int(part, 16) for part in fields[0].split("-"))
        self.perms, self.offset = fields[1], int(fields[2], 16)
        self.name = fields[5].strip() if len(fields) > 5 else ""


def read_maps(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
        return [Mapping(line) for line in maps]


def find(mappings, address):
    low, high = 0, len(mappings)
    while low < high:
        middle = (low + high) // 2
        if address < mappings[middle].start:
            high = middle
        elif address >= mappings[middle].end:
            low = middle + 1
        else:
            return mappings[middle]
    return None


def base_name(mapping):
    return os.path.basename(mapping.name.removesuffix(" (deleted)")) if mapping else ""


class Object:
    """One ELF object as it lies in memory; `first` is the mapping of its first page."""

    def __init__(self, memory, first):
        self.memory, self.name, self.start = memory, first.name, first.start
        header = self.read(first.start, 64)
        if header[:5] != b"\x7fELF\x02":
            raise ValueError("no 64-bit ELF object")
        phoff, = struct.unpack_from("<Q", header, 32)
        phentsize, phnum = struct.unpack_from("<HH", header, 54)
        table = self.read(first.start + phoff, phentsize * phnum)
        headers = [struct.unpack_from("<IIQQQQQQ", table, i * phentsize) for i in range(phnum)]
        loads = [(vaddr, size) for kind, _, _, vaddr, _, _, size, _ in headers if kind == PT_LOAD]
        self.base = first.start - (min(loads)[0] & -PAGE)
        self.end = self.base + max(vaddr + size for vaddr, size in loads)
        self.dynamic = {}
        for kind, _, _, vaddr, _, _, size, _ in headers:
            if kind == PT_DYNAMIC:
                for tag, value in struct.iter_unpack("<qQ", self.read(self.base + vaddr, size // 16 * 16)):
                    if tag == 0:
                        break
                    self.dynamic.setdefault(tag, value)

    def read(self, address, size):
        data = os.pread(self.memory, size, address)
        if len(data) != size:
            raise ValueError("short read")
        return data

    def pointer(self, tag):
        """ld.so relocates most of these in place, not all."""
        value = self.dynamic.get(tag)
        return value if value is None or value >= self.base else value + self.base

    def relocations(self):
        """(address of the slot, name, type)"""
        strings, symbols = self.pointer(DT_STRTAB), self.pointer(DT_SYMTAB)
        if strings is None or symbols is None:
            return
        text = self.read(strings, self.dynamic.get(DT_STRSZ, 0))
        tables = [(self.pointer(DT_RELA), self.dynamic.get(DT_RELASZ, 0))]
        if self.dynamic.get(DT_PLTREL) == DT_RELA:
            tables.append((self.pointer(DT_JMPREL), self.dynamic.get(DT_PLTRELSZ, 0)))
        for table, size in tables:
            if not table:
                continue
            for offset, info, _ in struct.iter_unpack("<QQq", self.read(table, size // 24 * 24)):
                kind = info & 0xffffffff
                if kind in (GLOB_DAT, JUMP_SLOT):
                    at, = struct.unpack("<I", self.read(symbols + (info >> 32) * 24, 4))
                    yield self.base + offset, text[at:text.index(b"\0", at)].decode(), kind

    def holds(self, address):
        return self.start <= address < self.end


def objects(memory, mappings):
    for mapping in mappings:
        if mapping.offset == 0 and mapping.name.startswith("/") and mapping.perms[0] == "r":
            with contextlib.suppress(ValueError, OSError):
                yield Object(memory, mapping)


def read_slots(pid, mappings):
    slots = {}
    memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
    try:
        for item in objects(memory, mappings):
            for address, name, kind in item.relocations():
                value, = struct.unpack("<Q", item.read(address, 8))
                target = find(mappings, value)
                page = find(mappings, address)
                slots[f"{address:x}"] = {
                    "object": item.name, "name": name, "value": value, "lazy": kind == JUMP_SLOT and item.holds(value),
                    "target": target.name if target else "", "code": bool(target and "x" in target.perms),
                    "perms": page.perms if page else ""}
    finally:
        os.close(memory)
    return slots


def read_text(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def read_fds(pid):
    fds = {}
    for path in glob.glob(f"/proc/{pid}/fd/*"):
        with contextlib.suppress(OSError):
            fds[os.path.basename(path)] = os.readlink(path)
    return fds


def look(pid):
    mappings = read_maps(pid)
    status = dict(line.split(":", 1) for line in read_text(f"/proc/{pid}/status").splitlines() if ":" in line)
    return {
        "started": read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()[19],
        "slots": read_slots(pid, mappings),
        "mappings": sorted({f"{m.perms} {m.name}" for m in mappings if m.name}),
        "fds": read_fds(pid),
        "threads": {os.path.basename(os.path.dirname(p)): read_text(p).strip()
                    for p in glob.glob(f"/proc/{pid}/task/*/comm")},
        "signals": {key: status.get(key, "").strip() for key in ("SigCgt", "SigIgn")},
        "timers": [line for line in read_text(f"/proc/{pid}/timers").splitlines() if line.startswith("ID:")],
    }


def slot_findings(before, now):
    """Yields (bad, line) for each slot that is worth a line."""
    for address, slot in now["slots"].items():
        old = before["slots"].get(address)
        where = f"{os.path.basename(slot['object'])} {slot['name']} at {address}"
        if LIBRARY in os.path.basename(slot["target"]) and LIBRARY not in os.path.basename(slot["object"]):
            yield True, f"slot {where} points into {slot['target']}"
        elif not old or old["object"] != slot["object"]:
            continue
        elif old["perms"] != slot["perms"]:
            yield True, f"slot {where} lies on a page {slot['perms']}, before {old['perms']}"
        elif old["value"] != slot["value"]:
            bound = old["lazy"] and slot["code"] and not slot["lazy"]
            yield not bound, f"slot {where} {'bound' if bound else 'changed'}: {old['value']:x} -> {slot['value']:x}"


def other_findings(before, now):
    for tid, name in now["threads"].items():
        if name == THREAD:
            yield True, f"thread {tid} {name}"
    for fd, link in now["fds"].items():
        if MEMORY in link:
            yield True, f"fd {fd} {link}"
    for mapping in now["mappings"]:
        if MEMORY in mapping:
            yield True, f"mapping {mapping}"
        elif LIBRARY in mapping and mapping not in before["mappings"]:
            yield False, f"mapping {mapping}"
    for key, value in now["signals"].items():
        if value != before["signals"][key]:
            changed = int(value, 16) ^ int(before["signals"][key], 16)
            yield bool(changed & ~OF_LIBC), f"{key} {value}, before {before['signals'][key]}"
    for timer in now["timers"]:
        if timer not in before["timers"]:
            yield True, f"timer {timer}"


def compare(before, now):
    if before["started"] != now["started"]:
        print("got_check: another process has this pid now; save again", file=sys.stderr)
        return 2
    bad = 0
    for is_bad, line in (*slot_findings(before, now), *other_findings(before, now)):
        bad += is_bad
        print(f"{'LEFT ' if is_bad else 'fine '} {line}")
    print(f"{len(now['slots'])} slots looked at, {bad} differences that must not be")
    return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pid", type=int)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--save", metavar="FILE")
    action.add_argument("--compare", metavar="FILE")
    options = parser.parse_args()
    try:
        now = look(options.pid)
        if options.save:
            with open(options.save, "w", encoding="utf-8") as file:
                json.dump(now, file)
            return 0
        with open(options.compare, encoding="utf-8") as file:
            return compare(json.load(file), now)
    except (OSError, ValueError, IndexError) as error:
        print(f"got_check: cannot look at {options.pid}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

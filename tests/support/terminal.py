# SPDX-License-Identifier: Apache-2.0
"""A pseudo-terminal of a chosen size with one command in it, and a small screen: what somebody who
sits before it would see."""
import fcntl
import os
import re
import select
import struct
import subprocess
import termios
import time

import processes

SEQUENCE = re.compile(rb"\x1b\[([?0-9;]*)([A-Za-z])")


class Terminal:
    """`stdout` and `stderr` say which of them are the terminal; the others are pipes."""

    def __init__(self, command, env, rows=24, columns=80, stdout=True, stderr=True):
        self.ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(theirs)
        self.process = subprocess.Popen([str(word) for word in command], env=env, stdin=theirs, start_new_session=True,
                                        stdout=theirs if stdout else subprocess.PIPE, stderr=theirs if stderr else subprocess.PIPE)
        self.theirs, self.bytes, self.rows, self.columns = theirs, b"", rows, columns

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)

    def read(self, seconds=0.1):
        end = time.monotonic() + seconds
        while select.select([self.ours], [], [], max(0, end - time.monotonic()))[0]:
            self.bytes += os.read(self.ours, 65536)

    def until(self, text, seconds=10):
        self.until_match(re.escape(text), seconds)

    def until_match(self, pattern, seconds=10):
        def there():
            self.read(0.05)
            return re.search(pattern.encode(), self.bytes)

        processes.wait_until(there, seconds, "%r on the terminal" % pattern)

    def drain(self, quiet=0.3):
        """Reads until nothing more has come for a moment: what a process wrote last may come after its end."""
        seen = -1
        while seen != len(self.bytes):
            seen = len(self.bytes)
            self.read(quiet)

    def ends_with(self, wanted, seconds=5):
        """Reads on until that is the last of it: what a process wrote before its end may come after it."""
        def there():
            self.read(0.05)
            return self.bytes.endswith(wanted)

        processes.wait_until(there, seconds, "%r at the end of the terminal" % wanted)

    def type(self, text):
        os.write(self.ours, text.encode())

    def resize(self, rows, columns):
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process.send_signal(28)  # SIGWINCH: it is in a session of its own
        self.rows, self.columns = rows, columns

    def modes(self):
        return termios.tcgetattr(self.theirs)

    def screen(self):
        """Lines as they stand after all that was written: carriage return, line feed, and what weft uses of ECMA-48."""
        lines, row, column, at = [[]], 0, 0, 0
        data = self.bytes
        while at < len(data):
            found = SEQUENCE.match(data, at)
            if found:
                at = found.end()
                if found.group(2) == b"H":
                    row = column = 0
                elif found.group(2) == b"K":
                    del lines[row][column:]
                elif found.group(2) == b"J":
                    del lines[row + 1:]
                continue
            size = 1 if data[at] < 0x80 else 2 if data[at] < 0xE0 else 3 if data[at] < 0xF0 else 4
            char = data[at:at + size].decode(errors="replace")
            at += size
            if char == "\r":
                column = 0
            elif char == "\n":
                row += 1
                while len(lines) <= row:
                    lines.append([])
            else:
                lines[row] += " " * (column - len(lines[row]))
                lines[row][column:column + 1] = char
                column += 1
        return ["".join(line).rstrip() for line in lines]

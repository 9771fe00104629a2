# SPDX-License-Identifier: Apache-2.0
"""A control: forwards connections and spoils the `traceparent` of some requests on the way,
so that a comparison with the ground truth must notice. Framing stays as it was.

    breaking_proxy.py --forward PORT=PORT … [--every N]

Every Nth header, in turn: hidden from the receiver, given another task id, given another
request id, replaced by the one that passed before it (joins two requests)."""
import argparse
import itertools
import re
import socket
import threading

from listener import Listener

HEADER = re.compile(rb"\r\ntraceparent: 00-([0-9a-f]{32})-([0-9a-f]{16})", re.IGNORECASE)


class Spoiler:
    def __init__(self, every):
        self._every, self._count, self._last = every, 0, None
        self._ways = itertools.cycle((self._hide, self._other_task, self._other_request, self._join))
        self._lock = threading.Lock()

    def __call__(self, data):
        return HEADER.sub(self._header, data)

    def _header(self, match):
        with self._lock:
            self._count += 1
            text = match.group(0)
            if self._count % self._every == 0:
                text = next(self._ways)(text)
            else:
                self._last = match.group(0)
            return text

    @staticmethod
    def _hide(text):
        return text.replace(text[2:13], b"x-unrelated", 1)

    @staticmethod
    def _other_task(text):
        digits = text[18:50]
        return text.replace(digits, digits[1:] + digits[:1], 1)

    @staticmethod
    def _other_request(text):
        return text[:51] + text[52:] + text[51:52]

    def _join(self, text):
        return self._last or text


def pump(source, target, change):
    try:
        while data := source.recv(65536):
            target.sendall(change(data) if change else data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, target):
            end.close()


class Proxy(Listener):
    def __init__(self, here, there, spoiler):
        self.there, self.spoiler = there, spoiler
        super().__init__(here)

    def serve(self, client, begun):
        server = socket.create_connection(("127.0.0.1", self.there))
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=pump, args=(server, client, None), daemon=True).start()
        pump(client, server, self.spoiler)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--forward", action="append", required=True, metavar="PORT=PORT")
    parser.add_argument("--every", type=int, default=3)
    options = parser.parse_args()
    spoiler = Spoiler(options.every)
    for pair in options.forward:
        Proxy(*map(int, pair.split("=")), spoiler)
    threading.Event().wait()


if __name__ == "__main__":
    main()

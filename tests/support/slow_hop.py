# SPDX-License-Identifier: Apache-2.0
"""A hop of the network: takes connections here, and carries their bytes to somebody else and back. For
a moment it may be slow: what begins to pass it then takes longer, and the answer to that."""
import socket
import threading
import time

from listener import Listener


class Passage:
    """Of one connection: whether its request was held up, and how long the answer to that is to be."""

    def __init__(self):
        self.held, self.back_s = False, 0


class SlowHop(Listener):
    def __init__(self, there):
        self._there = there
        self._slow_until, self._there_s, self._back_s = 0, 0, 0
        super().__init__()

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.port

    def be_slow(self, seconds, there_s, back_s):
        self._there_s, self._back_s = there_s, back_s
        self._slow_until = time.monotonic() + seconds

    def serve(self, client, begun):
        server = socket.create_connection(("127.0.0.1", self._there))
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        passage = Passage()
        threading.Thread(target=self._carry, args=(server, client, passage, self._answer), daemon=True).start()
        self._carry(client, server, passage, self._request)

    def _request(self, passage):
        """Once a request: its later parts follow the first."""
        if passage.held or time.monotonic() > self._slow_until:
            return 0
        passage.held, passage.back_s = True, self._back_s
        return self._there_s

    @staticmethod
    def _answer(passage):
        back_s, passage.held, passage.back_s = passage.back_s, False, 0
        return back_s

    @staticmethod
    def _carry(source, target, passage, hold_up):
        try:
            while data := source.recv(65536):
                time.sleep(hold_up(passage))
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            for end in (source, target):
                end.close()

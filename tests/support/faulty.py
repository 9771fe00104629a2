# SPDX-License-Identifier: Apache-2.0
"""A peer that fails as the last word of a request's path says, on plain sockets:

    reset     takes the request, then RST        silent   never answers
    cut       half of an answer, then RST        late     answers when told to (release)
    closed    takes the request, then FIN        events   an answer of events without an end
    half      half of an answer, then FIN        fine     answers
"""
import contextlib
import socket
import struct
import threading

from listener import Listener

HALF = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this"


class FaultyPeer(Listener):
    def __init__(self):
        self.released, self.asked = threading.Event(), []
        self.events_sent = 0
        super().__init__()

    def close(self):
        self.released.set()
        super().close()

    def serve(self, client, begun):
        with contextlib.suppress(OSError), client:
            data = b""
            while True:
                while b"\r\n\r\n" not in data:
                    part = client.recv(65536)
                    if not part:
                        return
                    data += part
                head, _, data = data.partition(b"\r\n\r\n")
                path = head.split(b" ")[1].decode()
                self.asked.append(path)
                getattr(self, path.rpartition("/")[2])(client)

    @staticmethod
    def fine(client):
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    @staticmethod
    def reset(client):
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()

    def cut(self, client):
        client.sendall(HALF)
        self.reset(client)

    @staticmethod
    def closed(client):
        client.close()

    @staticmethod
    def half(client):
        client.sendall(HALF)
        client.close()

    @staticmethod
    def silent(client):
        client.recv(1)

    def late(self, client):
        self.released.wait(60)
        self.fine(client)

    def events(self, client):
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        while not self.released.wait(0.05):
            client.sendall(b"data: GET / HTTP/1.1\n\n")
            self.events_sent += 1

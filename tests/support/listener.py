# SPDX-License-Identifier: Apache-2.0
"""A listener on 127.0.0.1 that serves each connection in a thread of its own."""
import contextlib
import socket
import threading


class Listener:
    """Accepts from its construction on: whoever derives from it has all else ready by then. It ends with
    `with` or close ()."""

    def __init__(self, port=0):
        self.listener = socket.create_server(("127.0.0.1", port), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        with contextlib.suppress(OSError):  # closed already
            self.listener.shutdown(socket.SHUT_RDWR)  # wakes accept (): closing alone would leave it listening
        self.listener.close()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client, self.begin()), daemon=True).start()

    def begin(self):
        """What serve () gets for a connection; called in the order of arrival."""

    def serve(self, client, begun):
        raise NotImplementedError

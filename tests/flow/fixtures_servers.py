# SPDX-License-Identifier: Apache-2.0
"""Servers that weft does not speak to, as own processes or threads of the test: a PostgreSQL,
a redis, echoes with and without TLS, peers that fail; and a proxy that is the ground truth of
what crossed."""
import contextlib
import os
import pathlib
import pwd
import shutil
import socket
import ssl
import struct
import subprocess
import tempfile
import threading

import processes
from listener import Listener


def unprivileged():
    """What to put before a command that refuses to run as root."""
    return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.getuid() == 0 else []


class Postgres:
    """A cluster of its own in a temporary directory, listening on 127.0.0.1 alone."""

    def __init__(self, rng):
        found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"))
        if not found:
            raise processes.Missing("a PostgreSQL server (postgresql)")
        self.bin, self.port = found[-1].parent, processes.free_port(rng)
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="weft-postgres-"))
        if os.getuid() == 0:
            os.chown(self.directory, pwd.getpwnam("nobody").pw_uid, -1)
        self.process = None

    def __enter__(self):
        data = self.directory / "data"
        made = subprocess.run([*unprivileged(), self.bin / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-N"],
                              capture_output=True, text=True, check=False, cwd="/")
        if made.returncode:
            self.close()
            raise processes.Failed("initdb: " + made.stderr.strip())
        options = ("listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "ssl=off")
        self.process = subprocess.Popen(
            [*unprivileged(), self.bin / "postgres", "-D", data, "-p", str(self.port),
             *(word for option in options for word in ("-c", option))],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")
        processes.wait_until(lambda: processes.listens(self.port), 30, "PostgreSQL")
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.process:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


def start_redis(stage):
    """(port, path of its unix socket) of a redis that ends with the stage."""
    if not shutil.which("redis-server"):
        raise processes.Missing("a redis server (redis-server)")
    port, path = processes.free_port(stage.rng), stage.directory / "redis.sock"
    stage.start(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--unixsocket", path, "--save", "",
                 "--dir", stage.directory], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    processes.wait_until(lambda: processes.listens(port) and path.exists(), 20, "redis")
    return port, path


class Peer(Listener):
    """What each connection sent is kept in `received`."""

    def __init__(self, port=0):
        self.received = []
        super().__init__(port)

    def begin(self):
        self.received.append(bytearray())
        return self.received[-1]

    def serve(self, client, begun):
        with contextlib.suppress(OSError), client:
            self.talk(client, begun)


class Lines(Peer):
    """Answers each line after `delay` seconds with `answer`."""

    def __init__(self, delay=0.0, answer=b"yes\n"):
        self.delay, self.answer = delay, answer
        super().__init__()

    def talk(self, client, kept):
        pause = threading.Event()
        while data := client.recv(1 << 16):
            kept += data
            if data.endswith(b"\n"):
                pause.wait(self.delay)
                client.sendall(self.answer)


class Silent(Peer):
    """Answers the first `good` lines of a connection, and then nothing any more."""

    def __init__(self, good=0):
        self.good = good
        super().__init__()

    def talk(self, client, kept):
        answered = 0
        while data := client.recv(1 << 16):
            kept += data
            if data.endswith(b"\n") and answered < self.good:
                answered += 1
                client.sendall(b"yes\n")


class Closing(Peer):
    """Takes what comes and closes the connection."""

    def talk(self, client, kept):
        kept += client.recv(100)


class Resetting(Peer):
    """Takes what comes and resets the connection."""

    def talk(self, client, kept):
        kept += client.recv(100)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class TlsEcho(Peer):
    def __init__(self, directory):
        key, certificate = directory / "key.pem", directory / "certificate.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test",
                        "-keyout", key, "-out", certificate], check=True, capture_output=True)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)
        super().__init__()

    def talk(self, client, kept):
        with self.context.wrap_socket(client, server_side=True) as stream:
            while data := stream.recv(1 << 16):
                kept += data
                stream.sendall(data)


class Full:
    """Listens, and takes nobody any more: a connect waits until somebody loses patience."""

    def __enter__(self):
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(0)
        self.port = self.listener.getsockname()[1]
        self.fillers = []
        for _ in range(8):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", self.port))
            self.fillers.append(filler)
        return self

    def __exit__(self, *_):
        for one in (*self.fillers, self.listener):
            one.close()


class Counting(Peer):
    """A proxy before `port`, listening at `at`: the bytes of each direction, and how often the client began to
    write after it had been answered."""

    def __init__(self, port, at=0):
        self.target = port
        self.out = self.back = self.turns = 0
        self.lock = threading.Lock()
        super().__init__(at)

    def talk(self, client, kept):
        server = socket.create_connection(("127.0.0.1", self.target))
        state = {"asked": False}
        back = threading.Thread(target=self.forward, args=(server, client, state, None), daemon=True)
        back.start()
        self.forward(client, server, state, kept)
        back.join(10)
        server.close()

    def forward(self, source, sink, state, kept):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                with self.lock:
                    if kept is None:
                        self.back += len(data)
                        self.turns += state["asked"]
                        state["asked"] = False
                    else:
                        kept += data
                        self.out += len(data)
                        state["asked"] = True
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def counts(self):
        """(turns, bytes out, bytes back), once nothing more comes: a farewell may still be on its way."""
        seen = []

        def standing():
            with self.lock:
                seen.append((self.turns, self.out, self.back))
            return len(seen) > 5 and seen[-1] == seen[-6]
        processes.wait_until(standing, 10, "a proxy through which nothing goes")
        return seen[-1]

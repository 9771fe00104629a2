# SPDX-License-Identifier: Apache-2.0
"""A service whose requests ask other servers, as often as they are told to.

    GET /WHAT?n=N&port=P...    asks N times in the way that the function WHAT below says,
                               answers JSON; one thread for each connection
"""
import contextlib
import http.server
import json
import socket
import ssl
import struct
import sys
import time
import urllib.parse

kept = {}


def postgresql(n, port, keep=0, size=100, user="postgres"):
    import psycopg2

    def connect():
        return psycopg2.connect(host="127.0.0.1", port=port, user=user, dbname="postgres", connect_timeout=20)

    connection = kept.get(port) or connect()
    connection.autocommit = True
    with connection.cursor() as cursor:
        for i in range(n):
            cursor.execute("SELECT repeat('x', %s), %s", (size, i))
            assert cursor.fetchone() == ("x" * size, i)
    if keep:
        kept[port] = connection
    else:
        connection.close()
    return {"queries": n}


def redis(n, port, path=""):
    import redis as library

    client = library.Redis(unix_socket_path=path) if path else library.Redis("127.0.0.1", port)
    for i in range(n):
        client.set("key", i)
        assert int(client.get("key")) == i
    client.close()
    return {"commands": 2 * n}


def tls(n, port):
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port), timeout=20) as plain:
        with context.wrap_socket(plain) as stream:
            for _ in range(n):
                stream.sendall(b"ping")
                assert stream.recv(4) == b"ping"
    return {"pings": n}


def lines(n, port, size=10):
    """A protocol nobody knows: a line is answered by a line."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as stream:
        for _ in range(n):
            stream.sendall(b"\x01" * size + b"\n")
            answer = b""
            while not answer.endswith(b"\n"):
                answer += stream.recv(1 << 16)
    return {"lines": n}


def refused(n, port):
    for _ in range(n):
        with contextlib.suppress(ConnectionRefusedError), socket.socket() as stream:
            stream.connect(("127.0.0.1", port))
            raise AssertionError("nobody was to listen there")
    return {}


def refused_later(n, port):
    """Without blocking; how it went is asked for afterwards."""
    for _ in range(n):
        with socket.socket() as stream:
            stream.settimeout(20)
            with contextlib.suppress(ConnectionRefusedError):
                stream.connect(("127.0.0.1", port))
                raise AssertionError("nobody was to listen there")
    return {}


def timeout(n, port):
    """The application loses its patience."""
    for _ in range(n):
        with socket.socket() as stream:
            stream.settimeout(0.3)
            with contextlib.suppress(socket.timeout):
                stream.connect(("127.0.0.1", port))
                raise AssertionError("nobody was to answer there")
    return {}


def reset(n, port):
    """The peer resets the connection in place of an answer."""
    for _ in range(n):
        with socket.create_connection(("127.0.0.1", port), timeout=20) as stream:
            stream.sendall(b"\x01hello\n")
            with contextlib.suppress(ConnectionResetError):
                assert not stream.recv(10)
    return {}


def impatient(n, port, how="poll", good=0, leave=0):
    """Asks a peer that answers `good` lines, and gives up after 0.3 s: by poll, by SO_RCVTIMEO,
    in a TLS handshake. What it waited in vain, by its own clock."""
    waited = 0
    context = ssl.create_default_context()
    for _ in range(n):
        stream = socket.create_connection(("127.0.0.1", port), timeout=None if how == "rcvtimeo" else 20)
        for _ in range(good):
            stream.sendall(b"\x01query\n")
            assert stream.recv(100) == b"yes\n"
        if how == "rcvtimeo":
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 300_000))
        else:
            stream.settimeout(0.3)
        begin = time.monotonic_ns()
        try:
            if how == "tls":
                context.wrap_socket(stream, server_hostname="localhost")
            else:
                stream.sendall(b"\x01query\n")
                stream.recv(100)
            raise AssertionError("nobody was to answer")
        except (TimeoutError, BlockingIOError):
            waited += time.monotonic_ns() - begin
        if leave:
            kept[port] = stream
        else:
            stream.close()
    return {"waited_ns": waited}


def unread(n, port):
    """Says something and does not wait for an answer."""
    for _ in range(n):
        with socket.create_connection(("127.0.0.1", port), timeout=20) as stream:
            stream.sendall(b"\x01hello\n")
    return {}


def closed(n, port):
    """The peer closes the connection in place of an answer."""
    for _ in range(n):
        with socket.create_connection(("127.0.0.1", port), timeout=20) as stream:
            stream.sendall(b"\x01hello\n")
            assert not stream.recv(10)
    return {}


def names(n):
    for _ in range(n):
        socket.getaddrinfo("localhost", 80)
        socket.gethostbyname("localhost")
        socket.getaddrinfo("127.0.0.1", 80)  # nothing to look up
    return {}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65536
    disable_nagle_algorithm = True

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        fields = dict(urllib.parse.parse_qsl(url.query))
        fields = {key: int(value) if value.isdigit() else value for key, value in fields.items()}
        try:
            body, status = json.dumps(globals()[url.path.strip("/")](**fields)).encode(), 200
        except Exception as error:  # the test shall see it
            body, status = json.dumps(repr(error)).encode(), 500
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64


if __name__ == "__main__":
    Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()

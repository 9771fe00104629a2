# SPDX-License-Identifier: Apache-2.0
"""front.py PORT PEER_PORT [PATIENCE]: for each GET /KIND/… asks the peer for the same path, by the
client that KIND names and with 0.4 s of patience; answers 200 "ok …" or 502 "failed …"."""
import http.client
import http.server
import socket
import struct
import sys
import urllib.request

PORT, PEER = int(sys.argv[1]), int(sys.argv[2])
PATIENCE = float(sys.argv[3]) if len(sys.argv) > 3 else 0.4


def by_client(path):
    connection = http.client.HTTPConnection("127.0.0.1", PEER, timeout=PATIENCE)
    try:
        connection.request("GET", path)
        return connection.getresponse().read()
    finally:
        connection.close()


def by_urllib(path):
    with urllib.request.urlopen(f"http://127.0.0.1:{PEER}{path}", timeout=PATIENCE) as answer:
        return answer.read()


def by_socket(path):
    """A blocking socket whose patience is the kernel's."""
    with socket.create_connection(("127.0.0.1", PEER)) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, int(PATIENCE * 1e6)))
        client.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path.encode())
        answer = http.client.HTTPResponse(client)
        answer.begin()
        return answer.read()


def by_nobody(path):
    """Asks and does not wait for the answer."""
    with socket.create_connection(("127.0.0.1", PEER)) as client:
        client.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path.encode())
    return b"not waited for"


def by_upload(path):
    """More than the kernel takes before the peer has said anything."""
    connection = http.client.HTTPConnection("127.0.0.1", PEER, timeout=20)
    try:
        connection.request("POST", path, bytes(30_000_000))
        return connection.getresponse().read()
    finally:
        connection.close()


def by_patience(path):
    connection = http.client.HTTPConnection("127.0.0.1", PEER, timeout=60)
    connection.request("GET", path)
    return connection.getresponse().read()


CLIENTS = {"client": by_client, "urllib": by_urllib, "socket": by_socket, "nobody": by_nobody, "upload": by_upload,
           "patient": by_patience}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        try:
            status, text = 200, b"ok %d" % len(CLIENTS[self.path.split("/")[1]](self.path))
        except (OSError, http.client.HTTPException) as error:
            status, text = 502, b"failed " + type(error).__name__.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # a caller that has gone


Server(("127.0.0.1", PORT), Handler).serve_forever()

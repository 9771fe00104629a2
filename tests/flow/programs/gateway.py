# SPDX-License-Identifier: Apache-2.0
"""A gateway: what comes in goes out to one peer, header fields and all, as they came; twice if "twice" is
in the path. If "halves" is, the head's last line leaves in a write of its own.

    gateway.py PORT PEER_PORT
"""
import http.client
import http.server
import sys


class Peer(http.client.HTTPConnection):
    halves = False

    def send(self, data):
        if self.halves:
            self.sock or self.connect()
            self.sock.sendall(data[:-2])
            data = data[-2:]
        super().send(data)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        for _ in range(2 if "twice" in self.path else 1):
            self.ask()
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def ask(self):
        connection = Peer("127.0.0.1", int(sys.argv[2]), timeout=30)
        connection.halves = "halves" in self.path
        connection.putrequest("GET", self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        connection.getresponse().read()
        connection.close()

    def log_message(self, *arguments):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()

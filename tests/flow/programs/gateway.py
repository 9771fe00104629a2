# SPDX-License-Identifier: Apache-2.0
"""A gateway: what comes in goes out to one peer, header fields and all, as they came.

    gateway.py PORT PEER_PORT
"""
import http.client
import http.server
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[2]), timeout=30)
        connection.putrequest("GET", self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        connection.getresponse().read()
        connection.close()
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()

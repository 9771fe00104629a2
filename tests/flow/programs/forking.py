# SPDX-License-Identifier: Apache-2.0
"""forking.py PORT: a server that forks a child for every single request; its answer is the child's pid."""
import http.server
import os
import socketserver
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"%d" % os.getpid()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(socketserver.ForkingMixIn, http.server.HTTPServer):
    request_queue_size = 128


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()

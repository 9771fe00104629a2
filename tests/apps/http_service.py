# SPDX-License-Identifier: Apache-2.0
"""A service on the standard library alone: ThreadingHTTPServer, http.client and urllib."""
import http.client
import http.server
import json
import urllib.error
import urllib.parse
import urllib.request

import plan


def call(service, node, number, at):
    base = service.peers[node.peer]
    if node.kind == "G":
        try:
            with urllib.request.urlopen(base + node.path + "?" + node.query(number, at), timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(base).netloc, timeout=30)
    try:
        body = node.body(number, at)
        chunked = node.kind == "C"
        connection.request(
            "POST",
            node.path,
            plan.in_chunks(body) if chunked else body,
            {"Content-Type": "application/json"},
            encode_chunked=chunked,
        )
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


service = plan.Service(call)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # One small write for head and body where they fit; else Nagle and delayed
    # acknowledgements add 40 ms to every answer.
    wbufsize = 65536
    disable_nagle_algorithm = True

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        self.answer(url.path, dict(urllib.parse.parse_qsl(url.query)))

    def do_POST(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            body = self.read_chunks()
        else:
            body = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(urllib.parse.urlsplit(self.path).path, json.loads(body))

    def read_chunks(self):
        parts = []
        while True:
            size = int(self.rfile.readline().split(b";")[0], 16)
            parts.append(self.rfile.read(size))
            self.rfile.readline()
            if size == 0:
                return b"".join(parts)

    def answer(self, path, fields):
        status, body, chunked = service.handle(self.command, path, self.headers, fields)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if service.workers:
            self.send_header("Connection", "close")
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for part in plan.in_chunks(body, 8000):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64


service.pooled(Server(("127.0.0.1", service.port), Handler)).serve_forever()

# SPDX-License-Identifier: Apache-2.0
"""A relay: takes a JSON list of {"url": …, "arguments": …} by POST and POSTs the arguments of
each to its url. It knows nothing of trace contexts: what it sends on, somebody else wrote.

    relay_service.py --port N          (--name and --log are accepted and not used)
"""
import argparse
import http.client
import http.server
import json
import urllib.parse


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65536
    disable_nagle_algorithm = True

    def do_POST(self):
        for call in json.loads(self.rfile.read(int(self.headers["Content-Length"]))):
            url = urllib.parse.urlsplit(call["url"])
            connection = http.client.HTTPConnection(url.netloc, timeout=30)
            target = urllib.parse.urlunsplit(("", "", url.path, url.query, ""))
            connection.request("POST", target, json.dumps(call["arguments"]), {"Content-Type": "application/json"})
            connection.getresponse().read()
            connection.close()
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *arguments):
        pass


options = argparse.ArgumentParser()
for name in ("--name", "--log"):
    options.add_argument(name)
options.add_argument("--port", type=int, required=True)
http.server.ThreadingHTTPServer(("127.0.0.1", options.parse_args().port), Handler).serve_forever()

# SPDX-License-Identifier: Apache-2.0
"""servers.py stdlib|aiohttp PORT DIRECTORY: what they received, as hashes, at /count the number
of fields; files of DIRECTORY below /static by sendfile; aiohttp also echoes a WebSocket at /ws."""
import hashlib
import http.server
import os
import pathlib
import sys

KIND, PORT, FILES = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
PIECES = [b"piece %d\n" % i * (i + 1) for i in range(20)]


def digest(method, target, headers, body):
    if target == "/count":
        return f"{len(headers)} {str('traceparent' in dict(headers)).lower()}".encode()
    fields = "".join("%s: %s\n" % pair for pair in headers)
    return hashlib.sha256(f"{method} {target}\n{fields}\n".encode() + body).hexdigest().encode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline() not in (b"\r\n", b"\n"):
            pass
        return body

    def answer(self):
        if self.path.startswith("/static/"):
            self.file(FILES / self.path.rpartition("/")[2])
        elif self.path == "/pieces":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in PIECES + [b""]:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        else:
            text = digest(self.command, self.path, self.headers.items(), self.body())
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(text)

    do_GET = do_HEAD = do_POST = do_PUT = answer

    def file(self, path):
        with open(path, "rb") as file:
            left = os.fstat(file.fileno()).st_size
            self.send_response(200)
            self.send_header("Content-Length", str(left))
            self.end_headers()
            self.wfile.flush()
            while left:
                left -= os.sendfile(self.connection.fileno(), file.fileno(), None, left)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True


def serve_aiohttp():
    from aiohttp import WSMsgType, web

    async def echo(request):
        socket = web.WebSocketResponse(compress=False)
        await socket.prepare(request)
        async for message in socket:
            if message.type == WSMsgType.BINARY:
                await socket.send_bytes(message.data)
        return socket

    async def pieces(request):
        answer = web.StreamResponse()
        answer.enable_chunked_encoding()
        await answer.prepare(request)
        for piece in PIECES:
            await answer.write(piece)
        return answer

    async def anything(request):
        text = digest(request.method, request.path_qs, request.headers.items(), await request.read())
        return web.Response(body=text)

    app = web.Application(client_max_size=1 << 30)
    app.router.add_get("/ws", echo)
    app.router.add_get("/pieces", pieces)
    app.router.add_static("/static", FILES)
    app.router.add_route("*", "/{rest:.*}", anything)
    web.run_app(app, host="127.0.0.1", port=PORT, print=None, access_log=None)


if KIND == "aiohttp":
    serve_aiohttp()
else:
    Server(("127.0.0.1", PORT), Handler).serve_forever()

# SPDX-License-Identifier: Apache-2.0
"""clients.py PORT CASE…: ordinary clients on ordinary libraries. Waits for a line on stdin,
then sends the same bytes each time it is run, one case after the other; prints what each
received, as a hash. Any surprise ends it with a traceback."""
import asyncio
import hashlib
import http.client
import os
import pathlib
import random
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import sigv4  # noqa: E402

PORT = int(sys.argv[1])
BASE = f"http://127.0.0.1:{PORT}"
LOOKALIKE = b"GET / HTTP/1.1\r\nHost: x\r\ntraceparent: none\r\n\r\n" * 60
UPLOAD = 50_000_000
received = hashlib.sha256()


def got(*parts):
    for part in parts:
        received.update(part if isinstance(part, bytes) else str(part).encode())
        received.update(b"\0")


def parts_of(size, step=1_000_000):
    block = random.Random(7).randbytes(step)
    return (block for _ in range(size // step))


def digest_of(parts):
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part)
    return whole.hexdigest().encode()


def connect():
    return http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)


def ask(connection, method, path, body=None, headers=None, **options):
    connection.request(method, path, body, headers or {}, **options)
    answer = connection.getresponse()
    text = answer.read()
    got(answer.status, text)
    return answer.status, text


# ---- http.client ---------------------------------------------------------------
def thousand():
    connection = connect()
    for i in range(1000):
        ask(connection, "GET", f"/k/{i}?q={i}")
    connection.close()


def upload():
    connection = connect()
    body = b"".join(parts_of(UPLOAD))
    status, text = ask(connection, "PUT", "/upload", body)
    assert (status, text) == (200, hashlib.sha256(body).hexdigest().encode())
    connection.close()


def shapes():
    connection = connect()
    for path in ("/drops", "/chunked", "/empty", "/large", "/drops"):
        ask(connection, "GET", path)
        ask(connection, "POST", path, LOOKALIKE)
    ask(connection, "HEAD", "/head")
    ask(connection, "OPTIONS", "*")
    ask(connection, "FROBNICATE", "/unknown")
    ask(connection, "GET", f"{BASE}/absolute")
    parts = (b"%d" % i * (i % 90 + 1) for i in range(300))
    ask(connection, "POST", "/chunked", parts, encode_chunked=True)
    ask(connection, "GET", "/close")
    connection.close()


def signed():
    connection = connect()
    for i in range(8):
        method, body = ("GET", b"") if i % 2 else ("POST", b"<a>%d</a>" % i)
        target = f"/signed?Version=2010-05-08&Action=ListUsers&n={i}"
        headers = {"Host": f"127.0.0.1:{PORT}", "X-Amz-Date": sigv4.TIME, "Content-Type": "text/xml",
                   "X-Amz-Meta-One": "  a   b ", "Accept-Encoding": "identity"}
        if body:
            headers["Content-Length"] = str(len(body))
        headers["Authorization"] = sigv4.sign(method, target, headers, body)
        assert ask(connection, method, target, body or None, headers)[0] == 200
        headers["X-Amz-Meta-One"] = "a c"
        assert ask(connection, method, target, body or None, headers)[0] == 403, "the verifier verifies"
    connection.close()


def tunnel():
    """Plain HTTP through a proxy's tunnel: not one byte of it is for us."""
    connection = connect()
    connection.set_tunnel("inner.example", 80)
    for i in range(20):
        ask(connection, "POST", f"/in/{i}", LOOKALIKE)
    connection.close()


def raw_socket():
    client = socket.create_connection(("127.0.0.1", PORT), timeout=20)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def talk(client, data, end):
    assert client.send(data) == len(data), "the caller sees its own count"
    text = b""
    while not text.endswith(end):
        data = client.recv(65536)
        assert data, text
        text += data
    got(text)


def tunnel_refused():
    """A proxy that says no: the connection goes on as HTTP."""
    with raw_socket() as client:
        for _ in range(3):
            talk(client, b"CONNECT denied:80 HTTP/1.1\r\nHost: denied:80\r\n\r\n", b"\r\n\r\nno")
            talk(client, b"GET /after HTTP/1.1\r\nHost: x\r\n\r\n", hashlib.sha256().hexdigest().encode())


def pipelined():
    """Requests that do not wait for answers, each in a write of its own; 16 are under way."""
    nothing = hashlib.sha256().hexdigest().encode()
    with raw_socket() as client:
        for _ in range(5):
            for i in range(16):
                client.sendall(b"GET /p/%d HTTP/1.1\r\nHost: x\r\n\r\n" % i)
            text = b""
            while text.count(nothing) < 16:
                text += client.recv(65536)
            got(text)


def flood():
    """More requests at once than anybody keeps account of, several in one write."""
    with raw_socket() as client:
        client.sendall(b"".join(b"GET /f/%d HTTP/1.1\r\nHost: x\r\n\r\n" % i for i in range(60)))
        client.sendall(b"".join(b"POST /g/%d HTTP/1.1\r\nContent-Length: 10\r\n\r\nGET / HTTP" % i for i in range(40)))
        text, whole = b"", 100 * (len(b"HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n") + 64)
        while len(text) < whole:
            data = client.recv(65536)
            assert data
            text += data
        assert len(text) == whole and text.endswith(hashlib.sha256(b"GET / HTTP").hexdigest().encode())
        got(text)


def dribble():
    """Writes of one byte, of head and body, chunks and trailer."""
    whole = (b"POST /drops?a=b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nX-Long: " + b"c" * 200
             + b"\r\n\r\n5;x=y\r\nGET /\r\n3\r\nabc\r\n0\r\nX-Trailer: traceparent\r\n\r\n")
    with raw_socket() as client:
        for _ in range(3):
            for i in range(len(whole)):
                assert client.send(whole[i:i + 1]) == 1
            answer = b""
            while not answer.endswith(hashlib.sha256(b"GET /abc").hexdigest().encode()):
                answer += client.recv(100)
            got(answer)


# ---- servers with limits: what they answer is printed -----------------------------
def ask_count(label, fields):
    head = b"GET /count HTTP/1.1\r\n" + b"".join(b"%s: %s\r\n" % field for field in fields) + b"\r\n"
    with raw_socket() as client:
        client.sendall(head)
        answer = http.client.HTTPResponse(client)
        answer.begin()
        text = answer.read()
        print(label, answer.status, text.decode() if answer.status == 200 else "", flush=True)


def many_fields():
    for count in (20, 63, 64, 65, 99, 100):
        ask_count(count, [(b"Host", b"x")] + [(b"X-%d" % i, b"1") for i in range(count - 1)])


def long_heads():
    for size in (1000, 6000, 6200, 8100, 8300):
        rest = size - len(b"GET /count HTTP/1.1\r\nHost: x\r\nX-Long: \r\n\r\n")
        ask_count(size, [(b"Host", b"x"), (b"X-Long", b"c" * rest)])


# ---- bodies that pass no write call; descriptors with two names -----------------
def sendfile():
    """socket.sendfile: the head by send, the body by sendfile, twice on one connection."""
    with tempfile.TemporaryFile() as file, raw_socket() as client:
        for part in parts_of(3_000_000):
            file.write(part)
        for size in (3_000_000, 10, 700_000):
            file.seek(0)
            client.sendall(b"PUT /sendfile HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size)
            assert client.sendfile(file, 0, size) == size
            talk(client, b"GET /after HTTP/1.1\r\nHost: x\r\n\r\n", hashlib.sha256().hexdigest().encode())


def splice():
    """A body out of a pipe."""
    source, sink = os.pipe()
    with raw_socket() as client:
        for _ in range(3):
            client.sendall(b"PUT /splice HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(LOOKALIKE))
            os.write(sink, LOOKALIKE)
            left = len(LOOKALIKE)
            while left:
                left -= os.splice(source, client.fileno(), left)
            talk(client, b"GET /after HTTP/1.1\r\nHost: x\r\n\r\n", hashlib.sha256().hexdigest().encode())


def two_names():
    """A socket under two descriptors, used in turn, in the middle of a body too."""
    nothing = hashlib.sha256().hexdigest().encode()
    with raw_socket() as client:
        talk(client, b"GET /before HTTP/1.1\r\nHost: x\r\n\r\n", nothing)
        client.sendall(b"POST /two HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(LOOKALIKE) + LOOKALIKE[:100])
        with client.dup() as other:
            other.sendall(LOOKALIKE[100:200])
            client.sendall(LOOKALIKE[200:])
            talk(other, b"", hashlib.sha256(LOOKALIKE).hexdigest().encode())
            talk(other, b"GET /other HTTP/1.1\r\nHost: x\r\n\r\n", nothing)
        talk(client, b"GET /again HTTP/1.1\r\nHost: x\r\n\r\n", nothing)


def inherited():
    """A child process writes the middle of the body, on the descriptor that it inherited."""
    child = "import os, sys; os.write (int (sys.argv[1]), b'GET /child HTTP/1.1\\r\\n\\r\\n')"
    size = len("GET /child HTTP/1.1\r\n\r\n")
    with raw_socket() as client:
        for before, path in ((b"before", b"child"), (b"after", b"children")):
            talk(client, b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n" % before, hashlib.sha256().hexdigest().encode())
            client.sendall(b"POST /%s HTTP/1.1\r\nContent-Length: %d\r\n\r\nab" % (path, size + 4))
            subprocess.run([sys.executable, "-c", child, str(client.fileno())], check=True, pass_fds=[client.fileno()])
            talk(client, b"yz", hashlib.sha256(b"abGET /child HTTP/1.1\r\n\r\nyz").hexdigest().encode())


def inherited_rest():
    """A child writes the rest of a body, unseen; then the length of what is missing from our account
    is that of a head, and a body of requests stands where we would think that one begins."""
    nothing = hashlib.sha256().hexdigest().encode()
    inner = b"GET /inner HTTP/1.1\r\nHost: x\r\n\r\n"
    head = b"POST /children HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (2 * len(inner))
    child = "import os, sys; os.write (int (sys.argv[1]), b'z' * int (sys.argv[2]))"
    with raw_socket() as client:
        talk(client, b"GET /before HTTP/1.1\r\nHost: x\r\n\r\n", nothing)
        client.sendall(b"POST /child HTTP/1.1\r\nContent-Length: %d\r\n\r\nab" % (len(head) + 2))
        subprocess.run([sys.executable, "-c", child, str(client.fileno()), str(len(head))], check=True,
                       pass_fds=[client.fileno()])
        talk(client, b"", hashlib.sha256(b"ab" + b"z" * len(head)).hexdigest().encode())
        for _ in range(3):
            talk(client, head + inner + inner, hashlib.sha256(inner + inner).hexdigest().encode())
        talk(client, b"GET /after HTTP/1.1\r\nHost: x\r\n\r\n", nothing)


def children():
    """Processes are started, by vfork, while a connection is in the middle of a body."""
    connection = connect()
    for close_fds in (True, False):
        connection.putrequest("POST", "/children")
        connection.putheader("Content-Length", str(len(LOOKALIKE) * 3))
        connection.endheaders(LOOKALIKE)
        subprocess.run(["/bin/true"], check=True, close_fds=close_fds)
        connection.send(LOOKALIKE)
        subprocess.run(["/bin/true"], check=True, close_fds=close_fds, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        connection.send(LOOKALIKE)
        answer = connection.getresponse()
        got(answer.status, answer.read())
        ask(connection, "GET", "/after")
    connection.close()


# ---- requests, httpx, aiohttp ----------------------------------------------------
def requests_session():
    import requests
    with requests.Session() as session:
        for i in range(20):
            got(session.get(f"{BASE}/r/{i}", params={"secret": "1"}, timeout=20).content)
        got(session.post(f"{BASE}/r", json={"a": [1, 2, 3]}, timeout=20).content)
        got(session.post(f"{BASE}/chunked", data=(b"%d" % i for i in range(50)), timeout=20).content)
        got(session.post(f"{BASE}/drops", data=LOOKALIKE, timeout=20).content)
        got(session.get(f"{BASE}/large", timeout=20).content, session.head(f"{BASE}/head", timeout=20).status_code)
        sent = session.put(f"{BASE}/upload", data=b"".join(parts_of(UPLOAD)), timeout=60).content
        assert sent == digest_of(parts_of(UPLOAD))


def httpx_client():
    import httpx
    with httpx.Client(base_url=BASE, timeout=60) as client:
        for i in range(20):
            got(client.get(f"/x/{i}").content)
        got(client.post("/drops", content=LOOKALIKE).content, client.get("/chunked").content)
        got(client.post("/chunked", content=(b"%d" % i for i in range(50))).content, client.get("/large").content)
        assert client.put("/upload", content=parts_of(UPLOAD)).content == digest_of(parts_of(UPLOAD))

    async def again():
        async with httpx.AsyncClient(base_url=BASE, timeout=60) as client:
            for i in range(10):
                got((await client.post(f"/a/{i}", content=LOOKALIKE)).content)
    asyncio.run(again())


async def parts_later(size):
    for part in parts_of(size):
        yield part


def aiohttp_client():
    import aiohttp

    async def go():
        async with aiohttp.ClientSession(BASE) as session:
            for i in range(20):
                async with session.get(f"/a/{i}") as answer:
                    got(await answer.read())
            for path in ("/drops", "/chunked", "/large"):
                async with session.post(path, data=LOOKALIKE) as answer:
                    got(await answer.read())
            async with session.post("/expected", data=LOOKALIKE, expect100=True) as answer:
                got(await answer.read())
            async with session.put("/upload", data=parts_later(UPLOAD)) as answer:
                assert await answer.read() == digest_of(parts_of(UPLOAD))
    asyncio.run(go())


# ---- WebSocket ---------------------------------------------------------------------
MESSAGES = ("hello", LOOKALIKE, LOOKALIKE * 40, b"\0" * 200, "GET / HTTP/1.1\r\n\r\n")


def websockets_echo():
    import websockets

    async def go():
        # Frames of one message each: what a compressor makes of it is no matter of ours.
        async with websockets.connect(f"ws://127.0.0.1:{PORT}/ws", compression=None) as socket_:
            for message in MESSAGES:
                await socket_.send(message)
                assert await socket_.recv() == message
    asyncio.run(go())


def aiohttp_echo():
    import aiohttp

    async def go():
        async with aiohttp.ClientSession() as session, session.ws_connect(f"{BASE}/ws") as socket_:
            for message in MESSAGES:
                if isinstance(message, str):
                    await socket_.send_str(message)
                else:
                    await socket_.send_bytes(message)
                assert (await socket_.receive()).data == message
    asyncio.run(go())


if __name__ == "__main__":
    print("ready", flush=True)
    sys.stdin.readline()
    for case in sys.argv[2:]:
        received = hashlib.sha256()
        globals()[case]()
        print(case, received.hexdigest(), flush=True)

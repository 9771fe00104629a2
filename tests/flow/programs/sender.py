# SPDX-License-Identifier: Apache-2.0
"""sender.py PORT: an ordinary client. Waits for a line on stdin, then sends the same
bytes each time it is run, one case after the other, each on a connection of its own;
prints "CASE ok" per case. Any surprise ends it with a traceback."""
import http.client
import random
import socket
import sys

import requests

PORT = int(sys.argv[1])
BASE = f"http://127.0.0.1:{PORT}"
RANDOM = random.Random(20260101)
LOOKALIKE = b"GET / HTTP/1.1\r\nHost: x\r\ntraceparent: none\r\n\r\n" * 60


def answer_of(connection):
    answer = connection.getresponse()
    assert (answer.status, answer.read()) == (200, b"ok")


def get():
    assert requests.get(f"{BASE}/items/7?secret=1&x=%20", timeout=20).text == "ok"


def post_json():
    assert requests.post(f"{BASE}/items", json={"a": [1, 2, 3]}, timeout=20).text == "ok"


def post_chunked():
    parts = (b"%d" % i * (i % 50 + 1) for i in range(200))
    assert requests.post(f"{BASE}/chunks", data=parts, timeout=20).text == "ok"


def keep_alive():
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=20)
    for i in range(50):
        if i % 3:
            connection.request("GET", f"/k/{i}?q={i}")
        else:
            connection.request("POST", f"/k/{i}", body=b"x" * i * 37)
        answer_of(connection)
    connection.close()


def upload():
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
    connection.request("PUT", "/upload", body=RANDOM.randbytes(5 * 1024 * 1024))
    answer_of(connection)
    connection.close()


def body_of_requests():
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=20)
    for _ in range(3):
        connection.request("POST", "/lookalike", body=LOOKALIKE)
        answer_of(connection)
    connection.close()


def raw(writes):
    with socket.create_connection(("127.0.0.1", PORT), timeout=20) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for data in writes:
            assert client.send(data) == len(data), "the caller must see its own count"
        assert client.recv(100).endswith(b"\r\n\r\nok")


WHOLE = b"POST /bytes?a=b HTTP/1.1\r\nHost: peer\r\nContent-Length: 45\r\nX-Long: " + b"c" * 300 + b"\r\n\r\n" + LOOKALIKE[:45]


def one_byte_writes():
    raw(WHOLE[i:i + 1] for i in range(len(WHOLE)))


def random_writes():
    for _ in range(40):
        cuts = sorted(RANDOM.sample(range(1, len(WHOLE)), 4))
        raw(WHOLE[a:b] for a, b in zip([0] + cuts, cuts + [len(WHOLE)]))


def vectored():
    with socket.create_connection(("127.0.0.1", PORT), timeout=20) as client:
        pieces = [WHOLE[i:i + 7] for i in range(0, len(WHOLE), 7)]
        assert client.sendmsg(pieces) == len(WHOLE)
        assert client.recv(100).endswith(b"\r\n\r\nok")


def line_feeds_only():
    raw([b"GET /lf HTTP/1.1\nHost: peer\n\n"])


def not_http():
    with socket.create_connection(("127.0.0.1", PORT), timeout=20) as client:
        for i in range(20):
            line = b"PING %d GET / HTTP/1.1\r\n" % i
            client.sendall(line)
            assert client.recv(100) == line


CASES = (get, post_json, post_chunked, keep_alive, upload, body_of_requests, one_byte_writes, random_writes,
         vectored, line_feeds_only, not_http)

if __name__ == "__main__":
    print("ready", flush=True)
    sys.stdin.readline()
    for case in CASES:
        case()
        print(case.__name__, "ok", flush=True)

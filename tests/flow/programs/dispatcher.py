# SPDX-License-Identifier: Apache-2.0
"""dispatcher PORT PEER-PORT: one thread accepts, makes a call of its own, reads the head and hands it
to workers, who take half a second to answer."""
import http.client
import queue
import socket
import sys
import threading
import time

port, peer = int(sys.argv[1]), int(sys.argv[2])
taken = queue.Queue()


def work():
    while True:
        client = taken.get()
        time.sleep(0.5)
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        client.close()


for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
listener = socket.create_server(("127.0.0.1", port))
while True:
    accepted, _ = listener.accept()
    housekeeping = http.client.HTTPConnection("127.0.0.1", peer)
    housekeeping.request("GET", "/housekeeping?n=0")
    housekeeping.getresponse().read()
    housekeeping.close()
    head = b""
    while b"\r\n\r\n" not in head:
        head += accepted.recv(1000)
    taken.put(accepted)

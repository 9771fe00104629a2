# SPDX-License-Identifier: Apache-2.0
"""prefork.py PORT WORKERS: at SIGUSR1 listens, and forks so many workers that accept on the one
socket; an answer is the pid of the worker that gave it, and takes it a moment."""
import os
import signal
import socket
import sys
import time

WORKERS = int(sys.argv[2])


def work(listener):
    while True:
        client, _ = listener.accept()
        data = b""
        while b"\r\n\r\n" not in data:
            data += client.recv(65536)
        time.sleep(0.02)
        body = b"%d" % os.getpid()
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body))
        client.close()


signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
signal.sigwait({signal.SIGUSR1})
server = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=128)
for _ in range(WORKERS):
    if os.fork() == 0:
        work(server)
signal.pause()

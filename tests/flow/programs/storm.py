# SPDX-License-Identifier: Apache-2.0
"""storm.py FILE: at SIGUSR1 runs programs and forks children beside busy threads, and writes what
came of it: programs by vfork, by fork, children that exit, children that talk over a socket,
descriptors more than before."""
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading

stop = threading.Event()


def churn():
    kept = []
    while not stop.is_set():
        kept.append(bytearray(200_000))
        kept = kept[-8:]


def talk(port):
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"x")
        return client.recv(1)


def echo(listener):
    while True:
        client, _ = listener.accept()
        client.sendall(client.recv(1))
        client.close()


def forked(action):
    """The child's exit status."""
    pid = os.fork()
    if pid == 0:
        try:
            action()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1]


signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
signal.sigwait({signal.SIGUSR1})
server = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=echo, args=(server,), daemon=True).start()
pool = multiprocessing.get_context("fork").Pool(4)
talked = pool.map(talk, [server.getsockname()[1]] * 20)
pool.close()  # terminate () may hang by itself when a worker dies with a lock of its queue
pool.join()
del pool
open_before = len(os.listdir("/proc/self/fd"))
plain = sum(subprocess.run(["/bin/true"], check=False).returncode == 0 for _ in range(250))
subprocess._USE_VFORK = False
by_fork = sum(subprocess.run(["/bin/true"], check=False).returncode == 0 for _ in range(250))
for _ in range(2):
    threading.Thread(target=churn, daemon=True).start()
children = sum(forked(lambda: bytearray(100_000)) == 0 for _ in range(500))
stop.set()
opened = len(os.listdir("/proc/self/fd")) - open_before
with open(sys.argv[1] + ".new", "w", encoding="ascii") as out:
    out.write(f"{plain} {by_fork} {children} {talked.count(b'x')} {opened}\n")
os.rename(sys.argv[1] + ".new", sys.argv[1])
signal.pause()

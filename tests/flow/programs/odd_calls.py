# SPDX-License-Identifier: Apache-2.0
"""odd_calls.py PORT CALLS CASE…: clients that use their sockets in ways that few do, each of them allowed. Waits for a line
on stdin, then sends the same bytes each time it is run; prints what each call returned and received, as a hash.
CALLS: a library of calls.c, through which those go that Python would not make."""
import ctypes
import hashlib
import os
import socket
import struct
import sys
import tempfile
import threading

PORT, CALLS = int(sys.argv[1]), ctypes.CDLL(sys.argv[2])
NOTHING = hashlib.sha256().hexdigest().encode()
LOOKALIKE = b"GET / HTTP/1.1\r\nHost: x\r\ntraceparent: none\r\n\r\n" * 20
HEAD = b"GET /odd/%d HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n"
received = hashlib.sha256()
libc = ctypes.CDLL(None, use_errno=True)


def got(*parts):
    for part in parts:
        received.update(part if isinstance(part, bytes) else str(part).encode())
        received.update(b"\0")


def connected():
    client = socket.create_connection(("127.0.0.1", PORT), timeout=20)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def hear(client, end=NOTHING):
    text = b""
    while not text.endswith(end):
        data = client.recv(65536)
        assert data, text
        text += data
    got(text)


def ask(client, number=0):
    client.sendall(HEAD % number)
    hear(client)


def vectors():
    """A head in 1 to 90 parts, empty ones between them; a body in 1,000."""
    with connected() as client:
        for parts in (1, 2, 7, 31, 63, 64, 65, 90):
            head = HEAD % parts + b""
            head = head[:-4] + b"\r\nX-Long: " + b"c" * 100 + b"\r\n\r\n"
            cuts = [i * len(head) // parts for i in range(parts + 1)]
            vector = []
            for begin, end in zip(cuts, cuts[1:]):
                vector += [head[begin:end], b""]
            got(client.sendmsg(vector[:-1]))
            hear(client)
            got(os.writev(client.fileno(), [head[:-2], b"", b"\r", b"\n"]))
            hear(client)
        body = [LOOKALIKE[i:i + 1] for i in range(len(LOOKALIKE))]
        client.sendall(b"POST /odd HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(LOOKALIKE))
        got(client.sendmsg(body))
        hear(client, hashlib.sha256(LOOKALIKE).hexdigest().encode())


def peeked():
    """A reader that looks before it reads, waits for all, and throws away."""
    with connected() as client:
        for number in range(4):
            client.sendall(HEAD % number)
            while b"\r\n\r\n" not in (seen := client.recv(4096, socket.MSG_PEEK)):
                pass
            size = seen.index(b"\r\n\r\n") + 4
            got(client.recv(size, socket.MSG_WAITALL))
            got(client.recv(64, socket.MSG_WAITALL))


def thrown_away():
    """MSG_TRUNC takes bytes of a TCP stream without giving them."""
    with connected() as client:
        ask(client, 1)
        client.sendall(HEAD % 2)
        while len(seen := client.recv(4096, socket.MSG_PEEK)) < 103:
            pass
        got(len(seen), len(client.recv(len(seen), socket.MSG_TRUNC)))
        ask(client, 3)


def stdio():
    """libc's streams on the socket: bytes that pass no call that anybody could replace."""
    libc.fdopen.restype = ctypes.c_void_p
    libc.fwrite.argtypes = ctypes.c_char_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p
    libc.fflush.argtypes = libc.fclose.argtypes = (ctypes.c_void_p,)
    with connected() as client:
        stream = libc.fdopen(os.dup(client.fileno()), b"w")
        for number in range(3):
            head = HEAD % number
            got(libc.fwrite(head, 1, len(head), stream), libc.fflush(stream))
            hear(client)
            ask(client, number)
        libc.fclose(stream)
    with connected() as client:
        client.settimeout(None)
        number = client.detach()
        stream = libc.fdopen(number, b"w")
        libc.fwrite(HEAD % 7, 1, len(HEAD % 7), stream)
        libc.fflush(stream)
        got(os.read(number, 4096))
        libc.fclose(stream)  # closed where nobody sees it: the next socket has its number
    with connected() as client:
        got(client.fileno() == number)
        for i in range(3):
            ask(client, i)


def replaced():
    """dup2 over a live connection, and the number of a closed one for a file and a pair."""
    with connected() as one, connected() as two:
        ask(one, 1)
        ask(two, 2)
        two.sendall(b"POST /odd HTTP/1.1\r\nContent-Length: %d\r\n\r\nab" % (len(LOOKALIKE) + 2))
        os.dup2(one.fileno(), two.fileno())
        ask(two, 3)
        ask(one, 4)
    with connected() as client:
        ask(client, 5)
        number = client.fileno()
        with tempfile.TemporaryFile() as file:
            os.dup2(file.fileno(), number)
            os.write(number, HEAD % 6)
            got(os.pread(number, 100, 0))
        left, right = socket.socketpair()
        with left, right:
            os.dup2(left.fileno(), number)
            os.write(number, HEAD % 7)
            got(right.recv(4096))


def half_spliced():
    """Half of a head out of a pipe, and all of one."""
    source, sink = os.pipe()
    with connected() as client:
        ask(client, 0)
        for cut in (10, 0):
            head = HEAD % cut
            if cut:
                client.sendall(head[:cut])
            os.write(sink, head[cut:])
            got(os.splice(source, client.fileno(), len(head) - cut))
            hear(client)
            ask(client, cut)


def corked():
    """Held back by the kernel, with MSG_MORE and TCP_CORK, in single bytes and through a tiny buffer."""
    with connected() as client:
        head = HEAD % 1
        for i in range(len(head)):
            got(client.send(head[i:i + 1], socket.MSG_MORE if i + 1 < len(head) else 0))
        hear(client)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        client.sendall(HEAD % 2)
        client.sendall(HEAD % 3)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
        text = b""
        while text.count(NOTHING) < 2:
            text += client.recv(65536)
        got(text)
    with connected() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        client.setblocking(False)
        body = LOOKALIKE * 400
        whole = b"POST /odd HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body + HEAD % 9
        at = 0
        while at < len(whole):
            try:
                at += client.send(whole[at:at + 300_000])
            except BlockingIOError:
                pass
        got(at)
        client.setblocking(True)
        hear(client)


def closed_while_read():
    """Another thread waits in recv while its socket is shut down and closed under it, then again with its number used anew."""
    for how in (socket.SHUT_RD, socket.SHUT_RDWR):
        client = connected()
        client.settimeout(None)
        ask(client, how)
        results = []

        def reader(fd=client.fileno()):
            try:
                results.append(os.read(fd, 100))
            except OSError as error:
                results.append(error.errno)

        thread = threading.Thread(target=reader)
        thread.start()
        client.shutdown(how)
        thread.join()
        client.close()
        got(results)
        with connected() as again:
            ask(again, 8)


def forked_writer():
    """Children come and go while a thread writes a head byte by byte; one of them shuts its copy and writes to its own."""
    with connected() as client:
        stop = threading.Event()

        def fork():
            while not stop.is_set():
                child = os.fork()
                if not child:
                    client.close()
                    os._exit(0)
                os.waitpid(child, 0)

        thread = threading.Thread(target=fork)
        thread.start()
        for number in range(10):
            head = HEAD % number
            for i in range(len(head)):
                got(client.send(head[i:i + 1]))
            hear(client)
        stop.set()
        thread.join()


def call(name, fd, data=None, size=0, flags=0):
    function = getattr(CALLS, "do_" + name)
    function.restype, function.argtypes = ctypes.c_long, (ctypes.c_long, ctypes.c_char_p, ctypes.c_long, ctypes.c_long)
    got(name, fd < 0, function(fd, data, size, flags))


def bad_calls():
    """Calls that fail, on nothing, on what is no socket or not connected, with nothing to move; and a connection that
    lives through those that may be made on one."""
    quiet = socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT
    source, sink = os.pipe()
    with socket.socket() as loose, socket.socket() as listener, open(os.devnull, "rb") as file:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        os.set_blocking(source, False)
        listener.setblocking(False)
        for fd in (-1, 9999, 70000, 0x7FFFFFFF, loose.fileno(), listener.fileno(), file.fileno(), source):
            for name in ("send", "sendto"):
                for size in (10, 0):
                    call(name, fd, HEAD, size, quiet)
            for name in ("writev", "readv", "sendmsg", "recvmsg", "recv", "accept"):
                call(name, fd, None, 0, quiet)
            if fd not in (loose.fileno(), file.fileno()):  # SIGPIPE; what can be written
                call("write", fd, HEAD, 10)
            call("read", fd, bytes(10), 0)
            call("shutdown", fd, None, 0, 5)
            call("dup2", fd, None, 0, -1)
            call("dup3", fd, None, 0, 0)
            call("fcntl", fd, None, 0, -1)
            call("connect", fd, None, 0)
            if fd != loose.fileno() and (fd < 0 or fd > 5000):
                call("close", fd)
    os.close(source)
    os.close(sink)
    with connected() as client:
        ask(client, 1)
        fd = client.fileno()
        for name, size in (("writev", 0), ("writev", -1), ("readv", 0), ("readv", 5000), ("send", 0), ("sendto", 0), ("read", 0)):
            call(name, fd, None, size, quiet)
        call("writev", fd, None, 1)
        call("sendmsg", fd, None, 0, quiet)
        call("recvmsg", fd, None, 0, quiet)
        call("recv", fd, bytes(10), 10, quiet)
        call("shutdown", fd, None, 0, 7)
        ask(client, 2)
        client.shutdown(socket.SHUT_WR)
        call("send", fd, HEAD, 10, quiet)


def disconnected():
    """connect to AF_UNSPEC ends a connection; the same socket is connected again."""
    client = connected()
    ask(client, 1)
    unspec = struct.pack("HHIQ", socket.AF_UNSPEC, 0, 0, 0)
    got(libc.connect(client.fileno(), unspec, len(unspec)))
    client.connect(("127.0.0.1", PORT))
    ask(client, 2)
    client.close()


def main():
    print("ready", flush=True)
    sys.stdin.readline()
    for case in sys.argv[3:]:
        globals()[case]()
        print(case, received.hexdigest(), flush=True)


main()

# SPDX-License-Identifier: Apache-2.0
"""Steady load on one application, and the independent look at a process."""
import http.client
import subprocess
import sys
import threading
import time

import processes
from scenario import plan

GOT_CHECK = processes.ROOT / "tests" / "support" / "got_check.py"


class Load:
    """Clients outside of weft, each request on a new connection, noted with its times. Any
    surprise is fatal: it is raised where the load is stopped. pause_s: between two requests of a client."""

    def __init__(self, app, node, parallel=4, pause_s=0.0):
        self.app, self.node, self.pause_s = app, node, pause_s
        self.done = []  # (start_ns, end_ns) of each request
        self.failure = None
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(i,), daemon=True) for i in range(parallel)]

    def run(self, index):
        number = 1_000_000 * (index + 1)
        try:
            while not self.stopping.wait(self.pause_s):
                number += 1
                start = time.time_ns()
                connection = http.client.HTTPConnection("127.0.0.1", self.app.port, timeout=30)
                connection.request("GET", self.node.path + "?" + self.node.query(number, "0"))
                answer = connection.getresponse()
                plan.check(self.node, number, "0", answer.status, answer.read())
                connection.close()
                self.done.append((start, time.time_ns()))
        except Exception as error:  # whatever it is, the test shall say it
            self.failure = error
            self.stopping.set()

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        processes.wait_until(lambda: len(self.done) > 50 or self.failure, 20, "load on the way")
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join(60)
        if self.failure:
            raise self.failure

    def goes_on(self):
        """Waits for a few more answers: the application lives."""
        seen = len(self.done)
        processes.wait_until(lambda: len(self.done) > seen + 10 or self.failure, 10, "answers under load")

    def counts(self, first_ns, last_ns):
        """Requests that lie wholly inside the interval, and those that touch it at all."""
        done = list(self.done)
        return (sum(first_ns <= start and end <= last_ns for start, end in done),
                sum(end >= first_ns and start <= last_ns for start, end in done))


def look(pid, *arguments):
    """got_check.py, which knows ELF and /proc and no line of weft."""
    return subprocess.run([sys.executable, GOT_CHECK, str(pid), *map(str, arguments)], capture_output=True, text=True,
                          check=False)

# SPDX-License-Identifier: Apache-2.0
"""The load: sends the requests of a drawn run, some workers over kept connections, some
over a new one each. Every answer is checked; the first wrong one ends it.

    load.py --seed N [--first N] --requests N --parallel N --url URL

Prints one JSON line: {"sent":…,"failed":…,"seconds":…}; failures go to stderr."""
import argparse
import http.client
import json
import queue
import sys
import threading
import time
import urllib.parse

import scenario
from scenario import plan


def send(connection, node, number):
    if node.kind == "G":
        connection.request("GET", node.path + "?" + node.query(number, "0"))
    else:
        body = node.body(number, "0")
        chunked = node.kind == "C"
        connection.request(
            "POST",
            node.path,
            plan.in_chunks(body) if chunked else body,
            {"Content-Type": "application/json"},
            encode_chunked=chunked,
        )
    answer = connection.getresponse()
    plan.check(node, number, "0", answer.status, answer.read())


class Load:
    def __init__(self, drawn, url, numbers, parallel):
        self._drawn, self._address = drawn, urllib.parse.urlsplit(url).netloc
        self._parallel, self._numbers = parallel, queue.Queue()
        for number in numbers:
            self._numbers.put(number)
        self.sent, self.failures = 0, []
        self._lock = threading.Lock()

    def run(self):
        workers = [threading.Thread(target=self._work, args=(index % 2 == 0,)) for index in range(self._parallel)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def _work(self, keep):
        connection = None
        while not self.failures:
            try:
                number = self._numbers.get_nowait()
            except queue.Empty:
                break
            node = self._drawn.request(number)
            connection = connection or http.client.HTTPConnection(self._address, timeout=60)
            try:
                send(connection, node, number)
                with self._lock:
                    self.sent += 1
            except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
                with self._lock:
                    self.failures.append("request %d: %s: %s" % (number, type(error).__name__, error))
            if not keep:
                connection.close()
                connection = None
        if connection:
            connection.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--first", type=int, default=1, help="number of the first request")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--parallel", type=int, default=8)
    parser.add_argument("--url", required=True)
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.requests)
    load = Load(scenario.draw(options.seed, ports=False), options.url, numbers, options.parallel)
    begin = time.monotonic()
    load.run()
    for failure in load.failures:
        print("load: " + failure, file=sys.stderr)
    seconds = round(time.monotonic() - begin, 3)
    print(json.dumps({"sent": load.sent, "failed": len(load.failures), "seconds": seconds}))
    return 1 if load.failures else 0


if __name__ == "__main__":
    sys.exit(main())

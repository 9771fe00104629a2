# SPDX-License-Identifier: Apache-2.0
"""A Jaeger all-in-one on loopback, as scripts/jaeger builds it: receives OTLP, answers queries."""
import json
import subprocess
import urllib.error
import urllib.request

import processes

SCRIPT = processes.ROOT / "scripts" / "jaeger"
PORTS = ["collector.otlp.http", "collector.otlp.grpc", "collector.http-server", "collector.grpc-server",
         "query.http-server", "query.grpc-server", "admin.http"]


def state():
    """0: it is there, 1: it could be built, 3: nothing here builds it."""
    return subprocess.run([SCRIPT, "--check"], check=False, capture_output=True).returncode


class Jaeger:
    def __init__(self, stage, *options):
        if state() != 0:
            raise processes.Missing("Jaeger (scripts/jaeger)")
        program = subprocess.run([SCRIPT], check=True, capture_output=True, text=True).stdout.strip()
        self.ports = {name: processes.free_port(stage.rng) for name in PORTS}
        with open(stage.directory / "jaeger.out", "ab") as out:
            self.process = stage.start(
                [program, "--log-level=error", "--memory.max-traces=1000000", *options]
                + ["--%s.host-port=127.0.0.1:%d" % one for one in self.ports.items()], stdout=out, stderr=out)
        processes.wait_until(lambda: all(map(processes.listens, self.ports.values())), 30, "Jaeger listening", 0.1)

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.ports["collector.otlp.http"]

    def get(self, path):
        address = "http://127.0.0.1:%d/api/%s" % (self.ports["query.http-server"], path)
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address, timeout=30) as answer:
            return json.load(answer)["data"]

    def trace(self, task):
        """{"spans": […], "processes": {…}}, or None where there is none (yet)."""
        try:
            return self.get("traces/" + task.hex())[0]
        except urllib.error.HTTPError:
            return None

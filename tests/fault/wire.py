# SPDX-License-Identifier: Apache-2.0
"""A wire between the controller and the sidecars that can be cut: as root two network
namespaces and a veth pair between them, whose link goes down; else a forwarder that is stopped.
Loopback addresses at both ends, so that no rule about networks is in the way."""
import os
import pathlib
import signal
import subprocess
import sys

import processes

FORWARD = pathlib.Path(__file__).with_name("forward.py")


def run(*words):
    subprocess.run(words, check=True, capture_output=True, text=True)


class Wire:
    """`near` is where sidecars connect, `far` where the controller listens."""

    def __init__(self, stage, rng):
        self.stage = stage
        self.far_port = processes.free_port(rng, 6)
        self.near_port = self.far_port + 3
        self.near = "tcp://127.0.0.1:%d" % self.near_port
        self.far = "tcp://127.0.0.1:%d" % self.far_port
        self.name = "weft%d" % rng.randrange(10**6)
        self.namespaces, self.forwarders = [], []
        try:
            self._lay()
        except (OSError, subprocess.CalledProcessError):
            self.close()
            self._forward((), "127.0.0.1:%d" % self.near_port, "127.0.0.1:%d" % self.far_port)

    def _lay(self):
        """here --- veth --- namespace: one forwarder on each side; the controller stays here, so
        that its clients need no namespace, and the far forwarder's far end comes back to it over
        a second pair that is never cut."""
        if os.geteuid() != 0:
            raise PermissionError("namespaces need root")
        inside = self.name
        run("ip", "netns", "add", inside)
        self.namespaces.append(inside)
        for letter, net in (("a", "10.231.77"), ("b", "10.231.78")):
            run("ip", "link", "add", self.name + letter, "type", "veth", "peer", "name", "eth" + letter,
                "netns", inside)
            run("ip", "addr", "add", net + ".1/24", "dev", self.name + letter)
            run("ip", "link", "set", self.name + letter, "up")
            run("ip", "-n", inside, "addr", "add", net + ".2/24", "dev", "eth" + letter)
            run("ip", "-n", inside, "link", "set", "eth" + letter, "up")
        port = self.far_port
        enter = ("ip", "netns", "exec", inside)
        self._forward((), "10.231.78.1:%d" % port, "127.0.0.1:%d" % port)
        self._forward(enter, "10.231.77.2:%d" % port, "10.231.78.1:%d" % port)
        self._forward((), "127.0.0.1:%d" % self.near_port, "10.231.77.2:%d" % port)

    def _forward(self, prefix, here, there):
        self.forwarders.append(self.stage.start([*prefix, sys.executable, FORWARD, here, there]))

    def cut(self):
        if self.namespaces:
            run("ip", "link", "set", self.name + "a", "down")
        else:
            self.forwarders[0].send_signal(signal.SIGSTOP)

    def mend(self):
        if self.namespaces:
            run("ip", "link", "set", self.name + "a", "up")
        else:
            self.forwarders[0].send_signal(signal.SIGCONT)

    def close(self):
        for forwarder in self.forwarders:
            self.stage.stop(forwarder)
        self.forwarders.clear()
        for letter in "ab":
            subprocess.run(["ip", "link", "del", self.name + letter], check=False, capture_output=True)
        for name in self.namespaces:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
        self.namespaces.clear()

# SPDX-License-Identifier: Apache-2.0
"""The JDK's clients, attached to while they run, against a peer that records every byte both
ways: see test_bytes_python.py."""
import subprocess

import pytest
import processes
import recorder
from fixtures_wire import PROGRAMS, twice


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    """Compiled once: what 17 makes runs on 25, too."""
    target = tmp_path_factory.mktemp("clients")
    subprocess.run([processes.javac(processes.java_home(17)), "-d", target, PROGRAMS / "Clients.java"], check=True)
    return target


@pytest.mark.parametrize("version", [17, 25])
def test_jdk_clients(stage, controller, rng, jdk, classes, version):
    """HttpURLConnection: 1,000 requests, 50 MB by length, 5 MB in chunks, Expect. java.net.http: 50 MB
    in chunks, 5 MB by length, Expect, its request to go on in HTTP/2, and a WebSocket."""
    home = jdk(version)
    with recorder.Peer() as peer:
        command = [home / "bin" / "java", "-Xmx512m", "-cp", classes, "Clients", peer.port, "url", "http", "h2c", "echo"]
        plain, marked = twice(stage, peer, command, join=lambda process: stage.weft("attach", process.pid))
        heads = recorder.check(plain, marked, rng)
    assert heads == (1000 + 12 + 1 + 2) + (200 + 8 + 1 + 2) + 2 + 1

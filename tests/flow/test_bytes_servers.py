# SPDX-License-Identifier: Apache-2.0
"""Servers whose requests are captured answer, to the byte, as they do without weft, and what
they were sent reached them unaltered; files leave by sendfile. And servers with limits answer
what is just below them: a head that is already long gets no trace field."""
import pathlib
import subprocess

import driver
import processes
import pytest
import recorder
from conftest import missing
from fixtures_chain import instruct, settle
from fixtures_probe import ACTIVE, state
from fixtures_wire import PROGRAMS, embed, run_client
from tap import tapped

TOMCAT = pathlib.Path("/usr/share/java")
ALWAYS = (driver.thousand, driver.uploads, driver.shapes, driver.pipelined, driver.files)
BARE, HEAD_LIMIT = 3, 6  # common/PROTOCOL.md
REQUESTS = 1000 + 7 + 5 + 12 + 16 + 9  # of twenty in one write 16 are followed, then the connection is left alone


@pytest.fixture(scope="module")
def tomcat(tmp_path_factory):
    """Compiled once: the class path of a server in Tomcat."""
    parts = "annotations-api", "api", "catalina", "coyote", "jaspic-api", "jni", "juli", "servlet-api", "util", "util-scan"
    path = ":".join(str(TOMCAT / f"tomcat10-{part}.jar") for part in parts)
    if not (TOMCAT / "tomcat10-catalina.jar").exists():
        missing("Tomcat (Debian: libtomcat10-java)")
    target = tmp_path_factory.mktemp("tomcat")
    compiler = processes.javac(processes.java_home(17))
    subprocess.run([compiler, "-cp", path, "-d", target, PROGRAMS / "TomcatServer.java"], check=True)
    return f"{target}:{path}"


@pytest.fixture
def files(stage):
    place = stage.directory / "files"
    (place / "static").mkdir(parents=True)
    for name, size in (("large", 3_000_000), ("small", 100)):
        for at in (place, place / "static"):
            (at / name).write_bytes(recorder.noise(size))
    return place


def start(stage, command, port):
    process = stage.start(command, stdin=subprocess.DEVNULL, stderr=open(stage.directory / "server.err", "ab"),
                          stdout=subprocess.DEVNULL, env=stage.env(), cwd=stage.directory)
    processes.wait_until(lambda: processes.listens(port), 30, "the server listening")
    return process


def capture(stage, pid):
    stage.wait_instances(1)
    instruct(stage, "--root", f"pid={pid}", "--embed", f"pid={pid}")
    processes.wait_until(lambda: state(pid)[0] == ACTIVE, 5, "active probe")


def answers(stage, rng, command, conversations, requests, join=None):
    """Talks to the server without weft and under an active instruction, and compares; so many
    requests are captured, and no more."""
    port = processes.free_port(rng)
    command = [port if word == "PORT" else word for word in command]
    process = start(stage, command, port)
    plain = [talk(port) for talk in conversations]
    stage.stop(process)
    run = [] if join else [stage.build / "weft", "run", "--service", "server", "--"]
    process = start(stage, run + command, port)
    if join:
        join(process)
    capture(stage, process.pid)
    marked = [talk(port) for talk in conversations]
    assert recorder.check(plain, marked, rng) == 0, "answers carry nothing of ours"

    def captured():
        return sum(name["executions"] for name in stage.json("tasks"))
    processes.wait_equal(captured, requests, 10, "captured requests")
    settle(0.5)
    assert captured() == requests


def test_http_server(stage, controller, rng, files):
    answers(stage, rng, [processes.PYTHON, PROGRAMS / "servers.py", "stdlib", "PORT", files], ALWAYS, REQUESTS)


def test_aiohttp_server(stage, controller, rng, files):
    command = [processes.PYTHON, PROGRAMS / "servers.py", "aiohttp", "PORT", files]
    answers(stage, rng, command, (*ALWAYS, driver.web_socket), REQUESTS + 1)


@pytest.mark.parametrize("version", [17, 25])
def test_tomcat(stage, controller, rng, files, jdk, tomcat, version):
    command = [jdk(version) / "bin" / "java", "-Xmx512m", "-cp", tomcat, "TomcatServer", "PORT", files]
    answers(stage, rng, command, ALWAYS, REQUESTS, lambda process: stage.weft("attach", process.pid))


# ---- limits of servers -----------------------------------------------------------
def limits(stage, rng, server, case):
    """What a server without weft answers to a client without and with weft, and how many
    requests the client's probe left bare for the size of their heads."""
    port = processes.free_port(rng)
    start(stage, [port if word == "PORT" else word for word in server], port)
    command = [processes.PYTHON, PROGRAMS / "clients.py", port, case]
    with tapped(stage) as tap:
        run = [stage.build / "weft", "run", "--service", "client", "--"]
        said = run_client(stage, command), run_client(stage, run + command, lambda process: embed(stage, process))
        answers_ = [[line.split() for line in lines[:-1]] for lines in said]

        def bare():
            return [r for r in tap.reports() if r["kind"] == BARE and r["reason"] == HEAD_LIMIT]
        wanted = sum(words[1:] == plain[1:] for plain, words in zip(*answers_))
        processes.wait_until(lambda: len(bare()) >= wanted, 10, "%d reports of long heads" % wanted)
        return *answers_, len(bare())


def test_a_server_of_a_hundred_fields(stage, controller, rng, files):
    """CPython's takes 99. Up to 64 are marked; beyond, a request arrives as it was."""
    server = [processes.PYTHON, PROGRAMS / "servers.py", "stdlib", "PORT", files]
    plain, marked, bare = limits(stage, rng, server, "many_fields")
    assert plain == [[str(n), "200", str(n), "false"] for n in (20, 63, 64, 65, 99)] + [["100", "431"]]
    assert marked == [[str(n), "200", str(n + 1), "true"] for n in (20, 63, 64)] + \
        [[str(n), "200", str(n), "false"] for n in (65, 99)] + [["100", "431"]]
    assert bare == 3


def test_a_server_of_eight_kilobytes(stage, controller, rng, files, jdk, tomcat):
    """Tomcat's limit is 8 KiB. Heads of up to 6 KiB are marked."""
    server = [jdk(17) / "bin" / "java", "-Xmx256m", "-cp", tomcat, "TomcatServer", "PORT", files]
    plain, marked, bare = limits(stage, rng, server, "long_heads")
    assert plain == [[str(n), "200", "2", "false"] for n in (1000, 6000, 6200, 8100)] + [["8300", "400"]]
    assert marked == [[str(n), "200", "3", "true"] for n in (1000, 6000)] + \
        [[str(n), "200", "2", "false"] for n in (6200, 8100)] + [["8300", "400"]]
    assert bare == 3

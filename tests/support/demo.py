# SPDX-License-Identifier: Apache-2.0
"""The demo behind scripts/demo: three applications, weft beside them, 200 requests, and a
comparison of what weft says with what the applications logged."""
import argparse
import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time

import ground_truth
import processes
import scenario

SUPPORT = processes.ROOT / "tests" / "support"
SETTLE_SECONDS = 5  # without any news: what is missing then is missing


class Demo:
    def __init__(self, options):
        self.options, self.stage = options, None
        self.drawn = scenario.draw(options.seed)
        self.apps, self.deviations = {}, []

    def say(self, text="", head=False):
        """Text goes to stderr where stdout belongs to the one JSON line."""
        out = sys.stderr if self.options.json else sys.stdout
        bold = head and out.isatty() and not os.environ.get("NO_COLOR")
        print("\033[1m%s\033[0m" % text if bold else text, file=out, flush=True)

    def deviates(self, text):
        self.deviations.append(text)

    def show(self, *arguments):
        """Runs a verb for its output and shows it as a user would see it."""
        self.say("\n$ weft " + shlex.join(arguments), head=True)
        done = self.stage.weft(*arguments)
        self.say((done.stdout + done.stderr).rstrip())

    # ---- the steps, in order -----------------------------------------------

    def run(self):
        begin = time.monotonic()
        with processes.Stage(keep=self.options.keep) as self.stage:
            self.say_drawn()
            self.start_applications()
            self.join()
            self.instruct()
            self.load(1, self.options.requests, self.options.parallel)
            executions = self.collect()
            self.print_answers(executions)
            self.leave()
            self.load(self.options.requests + 1, 1)  # off is really off
            result = self.compare(executions)
            self.check_alive()
            if self.options.keep:
                self.say("\nkept: %s" % self.stage.directory)
        return self.report(result, time.monotonic() - begin)

    def say_drawn(self):
        drawn = self.drawn
        runtime = {"flask": "CPython, Flask", "jvm": "JVM", "http": "CPython, http.server"}
        chain = " → ".join("%s (%s)" % (name, runtime[kind]) for name, kind in zip(drawn.names, drawn.kinds))
        ports = " ".join(map(str, drawn.ports))
        self.say("seed %d: %s" % (drawn.seed, chain))
        self.say("%d hops deep, at most %d calls each, ports %s" % (drawn.depth, drawn.fan_out, ports))

    def start_applications(self):
        urls = {name: "http://127.0.0.1:%d" % port for name, port in zip(self.drawn.names, self.drawn.ports)}
        if self.options.break_:
            urls = self.start_proxy(urls)
        for name, kind, port in zip(self.drawn.names, self.drawn.kinds, self.drawn.ports):
            run = kind != "jvm" or self.drawn.jvm_by_run
            self.apps[name] = self.stage.app(kind, name, port, urls, run=run)

    def start_proxy(self, urls):
        """A peer's port → one of our own, where the proxy stands."""
        forward, spoiled = [], {}
        for name, port in zip(urls, self.drawn.ports):
            here = processes.free_port(self.stage.rng)
            forward += ["--forward", "%d=%d" % (here, port)]
            spoiled[name] = "http://127.0.0.1:%d" % here
        self.stage.start([processes.PYTHON, SUPPORT / "breaking_proxy.py", *forward])
        for url in spoiled.values():
            port = int(url.rpartition(":")[2])
            processes.wait_until(lambda port=port: processes.listens(port), 5, "proxy on %d" % port)
        return spoiled

    def join(self):
        for app in self.apps.values():
            if app.kind == "jvm" and not self.drawn.jvm_by_run:
                self.show("attach", "--service", app.name, str(app.pid))
        self.stage.wait_instances(len(self.apps))

    def instruct(self):
        """Everyone embeds and captures before the first one may start tasks."""
        self.show("instruct", "--embed", "*", "--capture", "*")
        self.show("instruct", "--root", "service=" + self.drawn.names[0])

    def load(self, first, requests, parallel=1):
        command = [processes.PYTHON, SUPPORT / "load.py", "--seed", self.drawn.seed, "--first", first]
        command += ["--requests", requests, "--parallel", parallel, "--url", self.apps[self.drawn.names[0]].url]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300, check=False)
        if done.returncode != 0:
            outputs = "".join("\n%s: %s" % (app.name, app.text()[-1500:]) for app in self.apps.values())
            raise processes.Failed(
                "requests %d to %d: %s%s" % (first, first + requests - 1, done.stderr.strip(), outputs)
            )
        if requests > 1:
            self.say("\n%d requests, %d in parallel: %.1f s" % (requests, parallel, json.loads(done.stdout)["seconds"]))

    def collect(self):
        """All executions, as soon as all are there and whole, or nothing has changed any more."""
        last, news = None, time.monotonic()
        while True:
            executions = self.stage.json("tasks", "--each")
            whole = [each for each in executions if each["kind"] == "task" and each["complete"]]
            state = len(executions), len(whole), sum(each["hops"]["proven"] for each in executions)
            if state != last:
                last, news = state, time.monotonic()
            if len(whole) >= self.options.requests or time.monotonic() > news + SETTLE_SECONDS:
                return executions
            time.sleep(0.25)

    def print_answers(self, executions):
        self.show("ls")
        self.show("tasks")
        if executions:
            slowest = max(executions, key=lambda each: each["duration_ns"])
            self.show("show", slowest["task"])

    def leave(self):
        self.lost = self.count_losses()
        self.show("detach", "--all")

    def count_losses(self):
        losses = [instance["losses"] for instance in self.stage.json("ls")]
        return sum(sum(each.values()) for each in losses)

    def compare(self, executions):
        entries = ground_truth.read_logs([app.log for app in self.apps.values()])
        asked = range(1, self.options.requests + 1)
        for entry in entries:
            if entry.n not in asked and entry.traceparent:
                self.deviates("request %d at %s carried an id, but weft was off" % (entry.n, entry.at))
        return ground_truth.compare([entry for entry in entries if entry.n in asked], executions)

    def check_alive(self):
        for app in self.apps.values():
            if not app.alive():
                self.deviates("%s has ended with %d: %s" % (app.name, app.process.returncode, app.text()[-500:]))

    def report(self, result, seconds):
        if result.requests != self.options.requests:
            self.deviates("the applications handled %d requests" % result.requests)
        if self.lost:
            self.deviates("%d reports lost" % self.lost)
        exact = result.exact() and not self.deviations
        numbers = {
            "seed": self.drawn.seed,
            "requests": self.options.requests,
            "tasks": result.tasks,
            "complete": result.complete,
            "wrong": result.wrong,
            "orphans": result.orphans,
            "proven_hops": result.proven_hops,
            "expected_hops": result.expected_hops,
            "lost": self.lost,
            "seconds": round(seconds, 1),
        }
        notes = self.deviations + result.notes
        for note in notes[:20]:
            print("demo: " + note, file=sys.stderr)
        if len(notes) > 20:
            print("demo: and %d more deviations" % (len(notes) - 20), file=sys.stderr)
        if self.options.json:
            print(json.dumps(numbers, separators=(",", ":")))
        else:
            self.say("\ncompared with the logs of the applications, call by call:", head=True)
            self.say(", ".join("%s %s" % (key.replace("_", " "), value) for key, value in numbers.items()))
            self.say("every request is one task, every call proven, nothing wrong" if exact else "NOT as it must be")
        return 0 if exact else 1


def parse():
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON line on stdout, everything else on stderr")
    parser.add_argument("--seed", type=int, default=None, help="repeats a run; drawn and printed otherwise")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--parallel", type=int, default=8, help="requests in flight")
    parser.add_argument("--keep", action="store_true", help="leave the temporary directory with all logs")
    parser.add_argument(
        "--break",
        dest="break_",
        action="store_true",
        help="control: breaks propagation on purpose to show the comparison notices",
    )
    options = parser.parse_args()
    if options.requests < 1 or options.parallel < 1:
        parser.error("--requests and --parallel: at least 1")
    if options.seed is None:
        options.seed = processes.draw_seed()
    return options


def main():
    # Ended from outside, it still stops what it started.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    with contextlib.suppress(KeyboardInterrupt):
        try:
            return Demo(parse()).run()
        except processes.Missing as error:
            print("demo: missing: %s; install it" % error, file=sys.stderr)
        except processes.Failed as error:
            print("demo: %s" % error, file=sys.stderr)
        return 1
    return 130


if __name__ == "__main__":
    sys.exit(main())

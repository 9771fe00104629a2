# SPDX-License-Identifier: Apache-2.0
"""Plants one cause in a few of the requests to three real applications, and asks `weft profile`
why they are slow.

    planted.py --seeds N [--seed FIRST] [--cause CAUSE]     no cause, then every cause (or some) for each seed

plain  each connection has a thread that serves it: slow (sleeps), many (N+1), retry, lock
pool   two threads serve all that comes to the last service: queue (others keep them busy), behind (one of others
       holds a lock that everybody needs: who waits for it fills the pool, and who comes then waits before it)
hop    a hop of the network lies before each service behind the front: network (it is slow for a moment), way
       (so it is, but not on the way back)

A seed draws who stands where, which edge is struck, and how; what is planted is larger than what the slowest take
without it. Where the machine has become much slower since, and nothing is named, both are done once more. One
line a run; exit 1 if an answer was not the planted cause, or a uniform system was given one."""
import argparse
import dataclasses
import http.client
import json
import random
import signal
import sys
import threading
import time
import urllib.parse

import load
import processes
import scenario
import slow_hop
from scenario import plan

UNIFORM = "uniform"  # comes first in each system: it is the measure
CAUSES = {"plain": ["slow", "many", "retry", "lock"], "pool": ["queue", "behind"], "hop": ["network", "way"]}
WORKERS = 2
SLOW_HOP_S = 0.06  # so long what comes to the hop is slowed down, and as long as a request takes, at least
BUSY_S = 0.01  # until the pool is
EVERY = 30  # one request of so many is struck: some 3 %
REQUESTS = 360
WARM_UP = 60  # what a VM compiles and loads at first is no property of the requests
PARALLEL = 4
CLEARLY = 2  # what is planted is so much more than what the slowest take without it
DISTURBED = 1.5
CALLS_MOST = 60
MISSED = "named nothing"
# A JDK's server writes an answer in two, of which the second may wait 40 ms for the acknowledgement of the first, in
# some runs and in others not: most of the time of such a request then, where few executions prove nothing.
NO_STALL = {"jvm": ["-Dsun.net.httpserver.nodelay=true"]}
KINDS = {
    "slow": {"wait", "self"},  # it sleeps; under load a VM may be held up for a part of it
    "many": {"calls"},
    "retry": {"retry"},
    "lock": {"wait"},
    "queue": {"queue"},
    "behind": {"held", "queue", "wait", "self"},  # by chance one of the two may be most of it
    "network": {"network"},
    "way": {"queue"},  # what a request takes longer there than its answer back looks like one, and so it is told
}


@dataclasses.dataclass
class Edge:
    caller: str
    caller_name: str
    callee: str
    callee_name: str


class Planted:
    """The requests of one run: a fixed tree over the three services of a drawn scenario, its work
    a little different each time, and the cause in every thirtieth of them."""

    def __init__(self, drawn, cause, seed, slow_ms=0, each_ms=5, strike=None):
        """slow_ms: what the slowest 1 % take without any cause, where and when this runs: what is planted
        is to be slower. each_ms: what one call takes. strike: called before one that is to be struck goes off,
        where the cause is not in itself."""
        self.cause = cause
        self._seed, self._strike = seed, strike
        rng = random.Random("%d planted %s" % (seed, cause))
        words = rng.sample(scenario.WORDS, 4)
        kinds = [rng.choice("GP") for _ in range(4)]
        first, second, third = drawn.names
        self._nodes = [plan.Node(peer, kind, "/" + word, "s1", 200, 0, 40)
                       for peer, kind, word in zip((first, second, third, third), kinds, words)]
        self._parents = [None, 0, 1, 0]
        self._struck = rng.choice([2, 3] if cause in CAUSES["pool"] + ["many"] else [1, 2, 3])
        self.extra_ms = rng.randint(120, 200) + int(CLEARLY * slow_ms)
        self._calls = max(12, min(CALLS_MOST, int(self.extra_ms / each_ms)))
        self._retries = rng.randint(2, 4)
        self._turn = rng.randrange(EVERY)

    def edge(self):
        callee, caller = self._nodes[self._struck], self._nodes[self._parents[self._struck]]
        return Edge(caller.peer, self._name(caller), callee.peer, self._name(callee))

    @staticmethod
    def _name(node):
        return "%s %s" % (node.method, node.path)

    def request(self, number):
        rng = random.Random("%d planted request %d" % (self._seed, number))
        struck = number % EVERY == self._turn
        nodes = [dataclasses.replace(node, work="%s%d" % ("cs"[rng.random() < 0.8], rng.choice([2, 3, 4])), children=[])
                 for node in self._nodes]
        if struck and self.cause in CAUSES["pool"] + CAUSES["hop"]:
            self._strike(self)
        if self.cause in ("lock", "behind"):
            nodes[self._struck].work = "l1"
        for node, parent in zip(nodes[1:], self._parents[1:]):
            nodes[parent].children += self._calls_of(node, struck and node is nodes[self._struck])
        return nodes[0]

    def _calls_of(self, node, struck):
        if not struck:
            return [node]
        if self.cause == "slow":
            node.work = "s%d" % self.extra_ms
        if self.cause == "lock":
            node.work = "l%d" % self.extra_ms
        if self.cause == "many":
            return [node] * self._calls
        if self.cause == "retry":
            failed = dataclasses.replace(node, status=503, children=[])
            pause = plan.Node("-", "W", "/", "s%d" % (self.extra_ms // self._retries), 0, 0, 0)
            return [failed, pause] * self._retries + [node]
        return [node]


class System:
    """The applications of one drawn scenario on a stage of its own, warm. kind: of CAUSES. requests: in a run."""

    def __init__(self, stage, seed, kind="plain", requests=REQUESTS):
        self.stage, self.seed, self.requests = stage, seed, requests
        self.drawn = scenario.draw(seed)
        self._hops, self._others = {}, []
        workers = WORKERS if kind == "pool" else 0
        self.apps = [stage.app(app, name, port, self._peers(name, kind == "hop"), env={"OTEL_SERVICE_NAME": name},
                               options=NO_STALL.get(app, ()), workers=workers if name == self.drawn.names[-1] else 0)
                     for name, app, port in zip(self.drawn.names, self.drawn.kinds, self.drawn.ports)]
        self.slow_ms, self.each_ms = 0, 5
        self._usual_ns = self._last_ns = 0
        self._send(Planted(self.drawn, UNIFORM, seed), WARM_UP)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        for hop in self._hops.values():
            hop.close()

    def _peers(self, caller, by_hops):
        urls = {}
        for name, port in zip(self.drawn.names, self.drawn.ports):
            urls[name] = "http://127.0.0.1:%d" % port
            if by_hops and name != caller:
                self._hops[caller, name] = slow_hop.SlowHop(port)
                urls[name] = self._hops[caller, name].url
        return urls

    def _send(self, planted, requests):
        sender = load.Load(planted, self.apps[0].url, range(1, requests + 1), PARALLEL)
        sender.run()
        for other in self._others:
            other.join()
        self._others.clear()
        if sender.failures:
            raise processes.Failed(sender.failures[0])

    def _strike(self, planted):
        """Once, at the edge, or at the service that it leads to."""
        edge = planted.edge()
        if planted.cause in CAUSES["hop"]:
            there = 0.5 if planted.cause == "network" else 1
            extra_s, seconds = planted.extra_ms / 1000, max(SLOW_HOP_S, self._usual_ns / 1e9)
            self._hops[edge.caller, edge.callee].be_slow(seconds, there * extra_s, (1 - there) * extra_s)
            return
        work = "%s%d" % ("s" if planted.cause == "queue" else "l", planted.extra_ms)
        for _ in range(WORKERS if planted.cause == "queue" else 1):
            self._others.append(threading.Thread(target=self._other, args=(edge.callee, work)))
            self._others[-1].start()
        time.sleep(BUSY_S)

    def _other(self, callee, work):
        """Somebody else asks that service for something else."""
        url = next(app.url for app in self.apps if app.name == callee)
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=30)
        load.send(connection, plan.Node(callee, "P", "/export", work, 200, 0, 40), 0)
        connection.close()

    def profile(self, cause, *options):
        """What `weft profile` prints about one load; it ends with the load."""
        planted = Planted(self.drawn, cause, self.seed, self.slow_ms, self.each_ms, self._strike)
        verb = self.stage.start_weft("profile", *(str(app.pid) for app in self.apps), "--for", "100s", *options)
        line = ""
        while "instruction active" not in line:
            line = verb.stderr.readline()
            if not line:
                raise processes.Failed("`weft profile` ended: %s" % verb.communicate()[0])
        self._send(planted, self.requests)
        verb.send_signal(signal.SIGINT)
        out, err = verb.communicate(timeout=150)
        return planted, out, err

    def why(self, cause):
        """The most frequent task name's verdict. Without a cause it says, too, how slow slow is here."""
        planted, out, _ = self.profile(cause, "--json")
        names = [each for each in map(json.loads, out.splitlines()) if "why" in each]
        if not names:
            raise processes.Failed("no task name in: %s" % out[:500])
        self._last_ns = names[0]["why"]["mean_ns"]
        if cause == UNIFORM:
            self._usual_ns = self._last_ns
            self.slow_ms = names[0]["p99_ns"] / 1e6
            self.each_ms = names[0]["p50_ns"] / 1e6 / len(names[0]["edges"])
        return planted, names[0]["why"]

    def is_disturbed(self):
        """Whether in the last run everything took much longer than when it was measured how long slow is here:
        what was planted may then be smaller than what the machine does beside."""
        return self._last_ns > DISTURBED * self._usual_ns


def judge(planted, why):
    """"" if the answer is the planted cause and no other, else what is wrong with it."""
    if planted.cause == UNIFORM:
        return "" if why["verdict"] == "nothing" else "named something in a uniform system"
    if why["verdict"] != "named":
        return MISSED
    cause, edge = why["causes"][0], planted.edge()
    found = Edge(cause["from_service"], cause["from_name"], cause["service"], cause["name"])
    if found != edge and not (planted.cause in ("queue", "behind") and found.callee == edge.callee):
        return "named another place"  # who waits before a service does so on every edge to it
    return "" if cause["kind"] in KINDS[planted.cause] else "named another kind"


def say(seed, planted, why, verdict, seconds):
    found = ["%s %s -> %s %s" % (each["kind"], each["from_service"], each["service"], each["name"]) for each in why["causes"]]
    print("seed %d %-8s %-4s %d of %d, %.0f ms instead of %.0f: %s %s (%.1f s)" % (
        seed, planted.cause, "ok" if not verdict else "NO", why["slow"], why["of"], why["slow_ns"] / 1e6,
        why["mean_ns"] / 1e6, "; ".join(found) or why["verdict"], verdict, seconds), flush=True)


def look(system, cause):
    begin = time.monotonic()
    planted, why = system.why(cause)
    verdict = judge(planted, why)
    say(system.seed, planted, why, verdict, time.monotonic() - begin)
    return verdict


def run_seed(seed, causes):
    """How many were asked, and how many answers were wrong."""
    asked = wrong = 0
    for kind, its_own in CAUSES.items():
        wanted = [cause for cause in its_own if cause in causes]
        if not wanted:
            continue
        with processes.Stage(random.Random(seed)) as stage, System(stage, seed, kind) as system:
            for cause in [UNIFORM] + wanted:
                asked += 1
                verdict = look(system, cause)
                if verdict == MISSED and system.is_disturbed():
                    look(system, UNIFORM)
                    verdict = look(system, cause)
                wrong += verdict != ""
    return asked, wrong


def main():
    every = sum(CAUSES.values(), [])
    parser = argparse.ArgumentParser(prog="planted.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--cause", choices=every, action="append")
    options = parser.parse_args()
    first = options.seed if options.seed is not None else processes.draw_seed()
    done = [run_seed(seed, options.cause or every) for seed in range(first, first + options.seeds)]
    asked, wrong = (sum(each) for each in zip(*done))
    print("%d of %d answers as planted" % (asked - wrong, asked))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

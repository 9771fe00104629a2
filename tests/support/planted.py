# SPDX-License-Identifier: Apache-2.0
"""Plants one cause in a few of the requests to three real applications, and asks `weft profile`
why they are slow.

    planted.py --seeds N [--seed FIRST] [--cause CAUSE]     no cause, then every cause (or some) for each seed

A seed draws who stands where, which edge is struck, and how. One line a run; exit 1 if an answer
was not the planted cause, or a uniform system was given one."""
import argparse
import dataclasses
import json
import random
import signal
import sys
import time

import load
import processes
import scenario
from scenario import plan

CAUSES = ["uniform", "slow", "many", "retry", "lock"]  # the first one comes first: it is the measure
EVERY = 30  # one request of so many is struck: some 3 %
REQUESTS = 360
WARM_UP = 60  # what a VM compiles and loads at first is no property of the requests
PARALLEL = 4
CALLS_MOST = 60
MISSED = "named nothing"
KINDS = {
    "slow": {"wait", "self"},  # it sleeps; under load a VM may be held up for a part of it
    "many": {"calls"},
    "retry": {"retry"},
    "lock": {"wait"},
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

    def __init__(self, drawn, cause, seed, slow_ms=0, each_ms=5):
        """slow_ms: what the slowest 1 % take without any cause, where and when this runs: what is planted
        is to be slower. each_ms: what one call takes."""
        self.cause = cause
        self._seed = seed
        rng = random.Random("%d planted %s" % (seed, cause))
        words = rng.sample(scenario.WORDS, 4)
        kinds = [rng.choice("GP") for _ in range(4)]
        first, second, third = drawn.names
        self._nodes = [plan.Node(peer, kind, "/" + word, "s1", 200, 0, 40)
                       for peer, kind, word in zip((first, second, third, third), kinds, words)]
        self._parents = [None, 0, 1, 0]
        self._struck = rng.choice([2, 3]) if cause == "many" else rng.choice([1, 2, 3])
        self._extra_ms = rng.randint(120, 200) + int(1.3 * slow_ms)
        self._calls = max(12, min(CALLS_MOST, int(self._extra_ms / each_ms)))
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
        if self.cause == "lock":
            nodes[self._struck].work = "l1"
        for node, parent in zip(nodes[1:], self._parents[1:]):
            nodes[parent].children += self._calls_of(node, struck and node is nodes[self._struck])
        return nodes[0]

    def _calls_of(self, node, struck):
        if not struck or self.cause == "uniform":
            return [node]
        if self.cause == "slow":
            node.work = "s%d" % self._extra_ms
        if self.cause == "lock":
            node.work = "l%d" % self._extra_ms
        if self.cause == "many":
            return [node] * self._calls
        if self.cause == "retry":
            failed = dataclasses.replace(node, status=503, children=[])
            pause = plan.Node("-", "W", "/", "s%d" % (self._extra_ms // 4), 0, 0, 0)
            return [failed, pause] * self._retries + [node]
        return [node]


class System:
    """The applications of one drawn scenario on a stage of its own, warm."""

    def __init__(self, stage, seed):
        self.stage, self.seed = stage, seed
        self.drawn = scenario.draw(seed)
        urls = {name: "http://127.0.0.1:%d" % port for name, port in zip(self.drawn.names, self.drawn.ports)}
        self.apps = [stage.app(kind, name, port, urls, env={"OTEL_SERVICE_NAME": name})
                     for name, kind, port in zip(self.drawn.names, self.drawn.kinds, self.drawn.ports)]
        self.slow_ms, self.each_ms = 0, 5
        self._send(Planted(self.drawn, "uniform", seed), WARM_UP)

    def _send(self, planted, requests):
        sender = load.Load(planted, self.apps[0].url, range(1, requests + 1), PARALLEL)
        sender.run()
        if sender.failures:
            raise processes.Failed(sender.failures[0])

    def profile(self, cause, *options):
        """What `weft profile` prints about one load; it ends with the load."""
        planted = Planted(self.drawn, cause, self.seed, self.slow_ms, self.each_ms)
        verb = self.stage.start_weft("profile", *(str(app.pid) for app in self.apps), "--for", "100s", *options)
        line = ""
        while "instruction active" not in line:
            line = verb.stderr.readline()
            if not line:
                raise processes.Failed("`weft profile` ended: %s" % verb.communicate()[0])
        self._send(planted, REQUESTS)
        verb.send_signal(signal.SIGINT)
        out, err = verb.communicate(timeout=150)
        return planted, out, err


    def why(self, cause):
        """The most frequent task name's verdict. Without a cause it says, too, how slow slow is here."""
        planted, out, _ = self.profile(cause, "--json")
        names = [each for each in map(json.loads, out.splitlines()) if "why" in each]
        if not names:
            raise processes.Failed("no task name in: %s" % out[:500])
        if cause == "uniform":
            self.slow_ms = names[0]["p99_ns"] / 1e6
            self.each_ms = names[0]["p50_ns"] / 1e6 / len(names[0]["edges"])
        return planted, names[0]["why"]


def judge(planted, why):
    """"" if the answer is the planted cause and no other, else what is wrong with it."""
    if planted.cause == "uniform":
        return "" if why["verdict"] == "nothing" else "named something in a uniform system"
    if why["verdict"] != "named":
        return MISSED
    cause, edge = why["causes"][0], planted.edge()
    found = Edge(cause["from_service"], cause["from_name"], cause["service"], cause["name"])
    if found != edge:
        return "named another place"
    return "" if cause["kind"] in KINDS[planted.cause] else "named another kind"


def run_seed(seed, causes):
    wrong = 0
    with processes.Stage(random.Random(seed)) as stage:
        system = System(stage, seed)
        for cause in causes:
            begin = time.monotonic()
            planted, why = system.why(cause)
            verdict = judge(planted, why)
            wrong += verdict != ""
            found = ["%s %s -> %s %s" % (each["kind"], each["from_service"], each["service"], each["name"])
                     for each in why["causes"]]
            print("seed %d %-8s %-4s %d of %d, %.0f ms instead of %.0f: %s %s (%.1f s)" % (
                seed, cause, "ok" if not verdict else "NO", why["slow"], why["of"], why["slow_ns"] / 1e6,
                why["mean_ns"] / 1e6, "; ".join(found) or why["verdict"], verdict, time.monotonic() - begin), flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser(prog="planted.py", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--cause", choices=CAUSES[1:], action="append")
    options = parser.parse_args()
    first = options.seed if options.seed is not None else processes.draw_seed()
    causes = CAUSES[:1] + [cause for cause in CAUSES[1:] if not options.cause or cause in options.cause]
    wrong = sum(run_seed(seed, causes) for seed in range(first, first + options.seeds))
    print("%d of %d answers as planted" % (options.seeds * len(causes) - wrong, options.seeds * len(causes)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

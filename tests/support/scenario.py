# SPDX-License-Identifier: Apache-2.0
"""Draws one run from a seed: who stands where, how deep and how wide requests go,
and the plan of every single request."""
import dataclasses
import random
import sys
import uuid

import processes

sys.path.insert(0, str(processes.APPS))
import plan  # noqa: E402

NAMES = "front orders pricing search stock billing users cart rates media ledger quotes".split()
WORDS = "checkout orders quote items price report basket invoice offers lookup".split()
NODES_MAX = 16  # of one request: 200 requests of the widest kind still end within a minute on two cores


@dataclasses.dataclass
class Scenario:
    seed: int
    depth: int  # calls on the longest way from the first service down
    fan_out: int  # calls that one handler makes at most
    kinds: list  # of the services, in the order of the call chain
    names: list
    ports: list
    jvm_by_run: bool  # started by `weft run`; else joined live

    def __post_init__(self):
        # The routes of each service: some have a number or a uuid as a segment.
        rng = random.Random("%d routes" % self.seed)
        self._routes = {}
        for name in self.names:
            words = rng.sample(WORDS, 3)
            self._routes[name] = ["/" + words[0], "/%s/#" % words[1], "/%s/@/%s" % (words[2], words[0])]

    def service(self, name):
        return self.kinds[self.names.index(name)]

    def request(self, number):
        """The plan of request `number`; the same for the same seed."""
        rng = random.Random("%d request %d" % (self.seed, number))
        root = self._node(rng, self.names[0])
        budget = NODES_MAX - 1
        # One chain goes down all the way; the rest is drawn as far as the budget goes.
        chain = [root]
        for level in range(self.depth):
            chain.append(self._child(rng, chain[-1], level))
            budget -= 1
        level_nodes = [root]
        for level in range(self.depth):
            following = []
            for node in level_nodes:
                wanted = rng.randint(1, self.fan_out) if node in chain or rng.random() < 0.6 else 0
                while len(node.children) < wanted and budget > 0:
                    self._child(rng, node, level)
                    budget -= 1
                rng.shuffle(node.children)
                following += node.children
            level_nodes = following
        return root

    def _child(self, rng, parent, level):
        # The first levels follow the chain of services, so that every request passes
        # all three; deeper calls go to any other service.
        if level + 1 < len(self.names):
            name = self.names[level + 1]
        else:
            name = rng.choice([name for name in self.names if name != parent.peer])
        child = self._node(rng, name)
        parent.children.append(child)
        return child

    def _node(self, rng, name):
        route = rng.choice(self._routes[name])
        route = route.replace("#", str(rng.randrange(1, 100000)))
        route = route.replace("@", str(uuid.UUID(int=rng.getrandbits(128), version=4)))
        kind = rng.choice("GGPPC")
        upload = 0 if kind == "G" else rng.choice([0, rng.randrange(2000), rng.randrange(2000), 70000])
        answer = 66000 + rng.randrange(60000) if rng.random() < 0.06 else rng.randrange(3000)
        work = "%s%d" % (rng.choice("cs"), rng.choice([0, 1, 1, 2, 3, 6]))
        status = rng.choice([404, 503]) if rng.random() < 0.05 else 200
        return plan.Node(name, kind, route, work, status, upload, answer)


def draw(seed, ports=True):
    rng = random.Random(seed)
    kinds = ["flask", "jvm", "http"]
    rng.shuffle(kinds)
    return Scenario(
        seed=seed,
        depth=rng.randint(2, 4),
        fan_out=rng.randint(1, 3),
        kinds=kinds,
        names=rng.sample(NAMES, 3),
        jvm_by_run=rng.random() < 0.5,
        ports=_ports(rng, 3) if ports else [0, 0, 0],
    )


def _ports(rng, count):
    found = set()
    while len(found) < count:
        found.add(processes.free_port(rng))
    return sorted(found)

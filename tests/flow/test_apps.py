# SPDX-License-Identifier: Apache-2.0
"""The applications by themselves: what they log is the plan that was sent, call for call."""
import json
import subprocess

import processes
import scenario


def test_logs_are_the_plan_without_weft(seed, rng):
    drawn = scenario.draw(seed)
    with processes.Stage(rng) as stage:
        urls = {name: "http://127.0.0.1:%d" % port for name, port in zip(drawn.names, drawn.ports)}
        apps = [stage.app(*each, urls) for each in zip(drawn.kinds, drawn.names, drawn.ports)]
        load = [processes.PYTHON, processes.ROOT / "tests" / "support" / "load.py", "--seed", str(seed)]
        subprocess.run([*load, "--requests", "20", "--url", apps[0].url], check=True, timeout=300)
        logged = [json.loads(line) for app in apps for line in app.log.read_text().splitlines()]
    planned = [each for number in range(1, 21) for each in _calls(drawn.request(number), number, "0")]
    assert sorted((e["n"], e["at"], e["service"], e["method"], e["route"]) for e in logged) == sorted(planned)
    assert all(e["traceparent"] is None for e in logged)


def _calls(node, number, at):
    yield number, at, node.peer, node.method, node.path
    for index, child in enumerate(node.children):
        yield from _calls(child, number, "%s.%d" % (at, index))

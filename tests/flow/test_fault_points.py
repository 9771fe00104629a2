# SPDX-License-Identifier: Apache-2.0
"""Death at every named point on the way of a report, once each, under load: ring read, batch, push,
journal, correlate, acknowledge. What the points are is read from the sources: one that nobody
dies at fails the test."""
import re
import sys

import processes
from test_faults import build  # noqa: F401  pylint: disable=unused-import

sys.path.insert(0, str(processes.ROOT / "tests" / "fault"))
import harness  # noqa: E402
import moments  # noqa: E402

POINT = re.compile(r'WEFT_FAULT_POINT \("([a-z-]+)"\)')
# Before there is a report: died at in test_inject.py, step by step; when a journal is full: in test_restart.py.
ELSEWHERE = {"hold", *moments.JOURNAL_POINTS}


def points_in(room):
    files = sorted((processes.ROOT / room).rglob("*.c"))
    return {name for file in files for name in POINT.findall(file.read_text(encoding="utf-8"))} - ELSEWHERE


def test_every_point_is_died_at_once(rng, build):  # noqa: F811
    plan = [(moments.sidecar_dies_at, point) for point in sorted(points_in("instance"))]
    plan += [(moments.controller_dies_at, point) for point in sorted(points_in("controller"))]
    assert {point for _, point in plan} == {*moments.SIDECAR_POINTS, *moments.CONTROLLER_POINTS}
    rng.shuffle(plan)
    field = harness.Harness(harness.Stage(rng, build), rng, vms=1)
    try:
        for dies_at, point in plan:
            order = "%s:%d" % (point, rng.randrange(1, 20))
            field.say(order)
            assert dies_at(field, order) == order
            field.recover()
            assert field.deaths(order) == 1
        assert field.audit() == []
        assert field.kept, "batches came through"
    finally:
        field.close()

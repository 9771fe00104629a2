# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the flow tests. Each test gets a stage of its own: a temporary directory, a
private controller address, free ports from a printed seed, and an end that stops exactly
what the test started.

    stage       tests/support/processes.py: app (), controller (), weft (), json (), wait_instances ()
    controller  the stage's controller, running
    rng, seed   WEFT_SEED repeats a run
    jdk         a function: the home of JDK 17 or 25, or the test is skipped (failed where
                CI=true or WEFT_STRICT=1: nothing may be missing there)
"""
import os
import pathlib
import random
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import processes  # noqa: E402

STRICT = os.environ.get("CI") == "true" or os.environ.get("WEFT_STRICT") == "1"


def missing(what):
    """Ends the test: something that it needs is not on this machine."""
    text = "missing: %s" % what
    if STRICT:
        pytest.fail(text, pytrace=False)
    pytest.skip(text)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A Missing that escapes a test or a fixture counts as missing (), too."""
    outcome = yield
    report = outcome.get_result()
    if call.excinfo is not None and call.excinfo.errisinstance(processes.Missing) and not STRICT:
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1] or 0, "missing: %s" % call.excinfo.value)


def pytest_collection_modifyitems(items):
    built = all((processes.BUILD / name).exists() for name in ("weft", "weft-instance", "libweft_probe.so"))
    if not built and not STRICT:
        for item in items:
            if "stage" in item.fixturenames:
                item.add_marker(pytest.mark.skip(reason="missing: %s/weft (make)" % processes.BUILD))


@pytest.fixture
def seed():
    value = processes.draw_seed()
    print("WEFT_SEED=%d" % value)
    return value


@pytest.fixture
def rng(seed):
    return random.Random(seed)


@pytest.fixture
def stage(rng):
    with processes.Stage(rng) as value:
        yield value


@pytest.fixture
def controller(stage):
    return stage.controller()


@pytest.fixture
def jdk():
    def home(version):
        try:
            return processes.java_home(version)
        except processes.Missing as error:
            return missing(error)

    return home

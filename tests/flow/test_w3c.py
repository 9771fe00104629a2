# SPDX-License-Identifier: Apache-2.0
"""W3C Trace Context, levels 1 and 2, rule by rule, through relays that know nothing of it.

    this test ─▶ relay (CPython or JVM, unmodified, under weft) ─▶ peer that keeps every byte

What the relay sends on is compared with what it was sent: by the text of the specification, and
where weft does something else than the specification suggests, by the table at the end, which
says why.
"""
import dataclasses
import random
import typing

import processes
import pytest
from fixtures_chain import instruct
from fixtures_peer import RecordingPeer
from fixtures_relay import Relay, context, start_relay

TASK, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
RUNTIMES = ["cpython", "jvm-17", "jvm-25"]


def tp(version="00", task=TASK, parent=PARENT, flags="01", rest=""):
    return f"{version}-{task}-{parent}-{flags}{rest}"


@dataclasses.dataclass
class Case:
    """What is sent, and what must come out: the same task (or a new one), these flags, and this
    tracestate (None: no such field)."""

    name: str
    headers: typing.List[typing.Tuple[str, str]]
    same: bool = True
    flags: str = "01"
    state: typing.Optional[str] = None


def continued(name, *headers, **more):
    return Case(name, list(headers), **more)


def restarted(name, *headers):
    return Case(name, list(headers), same=False)


def parent(value):
    return "traceparent", value


def state(value, name="tracestate"):
    return name, value


GOOD = parent(tp())
MANY = [f"bar{n:02d}={n:02d}" for n in range(33)]
LARGE = "big=" + "x" * 200

TRACEPARENT = [
    restarted("none"),
    continued("valid", GOOD),
    restarted("given twice, the same", GOOD, GOOD),
    restarted("given twice, different", GOOD, parent(tp(task="5" * 32))),
    restarted("given twice, the second empty", GOOD, parent("")),
    restarted("empty", parent("")),
    restarted("a list of two", parent(tp() + "," + tp())),
    restarted("name with a dash", ("trace-parent", tp())),
    restarted("name with a dot", ("trace.parent", tp())),
    restarted("name with an underscore", ("trace_parent", tp())),
    continued("name TraceParent", ("TraceParent", tp())),
    continued("name TrAcEpArEnT", ("TrAcEpArEnT", tp())),
    continued("name TRACEPARENT", ("TRACEPARENT", tp())),
    continued("blank before", parent(" " + tp())),
    continued("tab before", parent("\t" + tp())),
    continued("blank behind", parent(tp() + " ")),
    continued("tab behind", parent(tp() + "\t")),
    continued("blanks and tabs around", parent("\t " + tp() + " \t")),
    restarted("blank inside", parent(tp().replace("-00f0", "- 00f0"))),
    restarted("version 00, a character more", parent(tp(rest="."))),
    restarted("version 00, a fifth field", parent(tp(rest="-what-the-future-will-be-like"))),
    continued("version cc", parent(tp("cc"))),
    continued("version 01", parent(tp("01"))),
    continued("version fe", parent(tp("fe"))),
    continued("version cc, a fifth field", parent(tp("cc", rest="-more-of-it"))),
    continued("version cc, an empty fifth field", parent(tp("cc", rest="-"))),
    restarted("version cc, more without a dash", parent(tp("cc", rest=".more"))),
    restarted("version cc, too short", parent(tp("cc")[:-1])),
    restarted("version ff", parent(tp("ff"))),
    restarted("version with a dot first", parent(tp(".0"))),
    restarted("version with a dot second", parent(tp("0."))),
    restarted("version in upper case", parent(tp("CC"))),
    restarted("version too long", parent(tp("000"))),
    restarted("version much too long", parent(tp("0000"))),
    restarted("version too short", parent(tp("0"))),
    restarted("task id of zeros", parent(tp(task="0" * 32))),
    restarted("task id with a dot first", parent(tp(task="." + TASK[1:]))),
    restarted("task id with a dot last", parent(tp(task=TASK[:-1] + "."))),
    restarted("task id in upper case", parent(tp(task=TASK.upper()))),
    restarted("task id with one letter in upper case", parent(tp(task=TASK.replace("bf", "bF")))),
    restarted("task id too long", parent(tp(task=TASK + "3"))),
    restarted("task id too short", parent(tp(task=TASK[1:]))),
    restarted("parent id of zeros", parent(tp(parent="0" * 16))),
    restarted("parent id with a dot first", parent(tp(parent="." + PARENT[1:]))),
    restarted("parent id with a dot last", parent(tp(parent=PARENT[:-1] + "."))),
    restarted("parent id in upper case", parent(tp(parent=PARENT.upper()))),
    restarted("parent id too long", parent(tp(parent=PARENT + "3"))),
    restarted("parent id too short", parent(tp(parent=PARENT[1:]))),
    restarted("flags with a dot first", parent(tp(flags=".0"))),
    restarted("flags with a dot second", parent(tp(flags="0."))),
    restarted("flags in upper case", parent(tp(flags="0A"))),
    restarted("flags too long", parent(tp(flags="001"))),
    restarted("flags too short", parent(tp(flags="1"))),
    continued("level 2: random flag stays set", parent(tp(flags="03")), flags="03"),
    continued("level 2: random flag stays clear", parent(tp(flags="01")), flags="01"),
    continued("flags that nobody knows are cleared", parent(tp(flags="fd")), flags="01"),
    continued("all flags", parent(tp(flags="ff")), flags="03"),
    continued("flags of a later version", parent(tp("cc", flags="03")), flags="03"),
]

TRACESTATE = [
    restarted("without traceparent", state("foo=1,bar=2")),
    restarted("beside an invalid traceparent", parent(tp("ff")), state("foo=1")),
    restarted("beside two traceparents", GOOD, GOOD, state("foo=1")),
    continued("one member", GOOD, state("foo=1"), state="foo=1"),
    continued("two members", GOOD, state("foo=1,bar=2"), state="foo=1,bar=2"),
    continued("before traceparent", state("foo=1,bar=2"), GOOD, state="foo=1,bar=2"),
    continued("beside a later version", parent(tp("cc", rest="-x")), state("foo=1"), state="foo=1"),
    continued("name with a dash", GOOD, state("foo=1", "trace-state")),
    continued("name with a dot", GOOD, state("foo=1", "trace.state")),
    continued("name TraceState", GOOD, state("foo=1", "TraceState"), state="foo=1"),
    continued("name TrAcEsTaTe", GOOD, state("foo=1", "TrAcEsTaTe"), state="foo=1"),
    continued("name TRACESTATE", GOOD, state("foo=1", "TRACESTATE"), state="foo=1"),
    continued("empty", GOOD, state("")),
    continued("blanks only", GOOD, state(" \t ")),
    continued("empty, then a list", GOOD, state(""), state("foo=1"), state="foo=1"),
    continued("a list, then empty", GOOD, state("foo=1"), state(""), state="foo=1"),
    continued("empty members", GOOD, state("foo=1,, ,bar=2,"), state="foo=1,bar=2"),
    continued("two fields in order", GOOD, state("foo=1,bar=2"), state("rojo=1,congo=2"),
              state="foo=1,bar=2,rojo=1,congo=2"),
    continued("three fields in order", GOOD, state("foo=1"), state("bar=2"), state("baz=3"), state="foo=1,bar=2,baz=3"),
    continued("fields apart from each other", state("foo=1"), GOOD, ("x-other", "y"), state("bar=2"), state="foo=1,bar=2"),
    continued("blanks and tabs around members", GOOD, state("foo=1 \t , \t bar=2, \t baz=3"), state="foo=1,bar=2,baz=3"),
    continued("blanks and tabs around the field", GOOD, state(" \tfoo=1\t "), state="foo=1"),
    continued("a blank inside a value", GOOD, state("foo=a b"), state="foo=a b"),
    continued("a blank that begins a value", GOOD, state("foo= a"), state="foo= a"),
    continued("a tab inside a value", GOOD, state("foo=a\tb")),
    continued("a blank before =", GOOD, state("foo =1")),
    continued("key in upper case", GOOD, state("FOO=1")),
    continued("key with a dot", GOOD, state("foo.bar=1")),
    continued("key that begins with @", GOOD, state("@foo=1")),
    continued("key that begins with a dash", GOOD, state("-foo=1")),
    continued("no key", GOOD, state("=1")),
    continued("no =", GOOD, state("foo")),
    continued("no value", GOOD, state("foo=,bar=3")),
    continued("= in a value", GOOD, state("foo=bar=baz")),
    continued("one bad member spoils all", GOOD, state("foo=1,bar"), state("baz=1")),
    continued("key of several tenants", GOOD, state("fw529a3039@dt=1,tenant@system=2"), state="fw529a3039@dt=1,tenant@system=2"),
    continued("key that begins with a digit", GOOD, state("0foo=1"), state="0foo=1"),
    continued("every character of a key", GOOD, state("abcdefghijklmnopqrstuvwxyz0123456789_-*/=1"),
              state="abcdefghijklmnopqrstuvwxyz0123456789_-*/=1"),
    continued("every character of a value", GOOD,
              state("foo=" + "".join(chr(c) for c in range(0x20, 0x7f) if chr(c) not in ",=")),
              state="foo=" + "".join(chr(c) for c in range(0x20, 0x7f) if chr(c) not in ",=")),
    continued("key of 256", GOOD, state("z" * 256 + "=1"), state="z" * 256 + "=1"),
    continued("key of 257", GOOD, state("z" * 257 + "=1")),
    continued("value of 256", GOOD, state("foo=" + "v" * 256), state="foo=" + "v" * 256),
    continued("value of 257", GOOD, state("foo=" + "v" * 257)),
    continued("32 members", GOOD, state(",".join(MANY[:32])), state=",".join(MANY[:32])),
    continued("32 members in two fields", GOOD, state(",".join(MANY[:9])), state(",".join(MANY[9:32])),
              state=",".join(MANY[:32])),
    continued("33 members", GOOD, state(",".join(MANY))),
    continued("33 members in two fields", GOOD, state(",".join(MANY[:9])), state(",".join(MANY[9:]))),
    continued("512 characters", GOOD, state("a=" + "x" * 253 + ",b=" + "y" * 254), state="a=" + "x" * 253 + ",b=" + "y" * 254),
    continued("513 characters: large members go first", GOOD, state(f"a=1,{LARGE},b={'y' * 250},c={'z' * 51},d=4"),
              state=f"a=1,c={'z' * 51},d=4"),
    continued("then whole members from the end", GOOD, state(",".join(f"k{n}={'v' * 100}" for n in range(7))),
              state=",".join(f"k{n}={'v' * 100}" for n in range(4))),
    continued("a small one behind what was cut goes, too", GOOD,
              state(",".join(f"k{n}={'v' * 100}" for n in range(5)) + ",z=1"),
              state=",".join(f"k{n}={'v' * 100}" for n in range(4))),
    continued("a single member that is too large", GOOD, state("k" * 256 + "=" + "v" * 256)),
]

# What weft decides where the specification leaves it open, or advises otherwise.
DOCUMENTED = [
    ("`sampled` is always set: a caller that does not record says nothing about those behind us, and 00 "
     "would switch them off where without weft they would have decided themselves",
     continued("flags 00", parent(tp(flags="00")), flags="01")),
    ("the same, with the random flag kept", continued("flags 02", parent(tp(flags="02")), flags="03")),
    ("a task that begins here has flags 01: its id is random, but the random flag is only a SHOULD, and "
     "level 1 calls it reserved and zero", restarted("a task of our own")),
    ("keys as in level 2, where @ is a character like any other", continued("@ at the end", GOOD, state("foo@=1"), state="foo@=1")),
    ("the same", continued("two @", GOOD, state("foo@@bar=1,foo@bar@baz=2"), state="foo@@bar=1,foo@bar@baz=2")),
    ("the same", continued("@ after 242", GOOD, state("t" * 242 + "@" + "v" * 13 + "=1"), state="t" * 242 + "@" + "v" * 13 + "=1")),
    ("a key that comes twice is passed on as it came: weft has no member of its own to move, and which of the two is "
     "old only their owner knows", continued("a key twice", GOOD, state("foo=1,foo=2"), state="foo=1,foo=2")),
    ("an invalid member spoils the list, as the level 1 suite wants it; the text would allow part of it",
     continued("a bad second field", GOOD, state("foo=1"), state("BAR=2"))),
]


@pytest.fixture(scope="module", params=RUNTIMES)
def relay(request):
    rng = random.Random(processes.draw_seed())
    with processes.Stage(rng) as stage, RecordingPeer() as peer:
        stage.controller()
        app = start_relay(stage, request.param)
        instruct(stage, "--on", "*")
        yield Relay(app, peer)


def check(relay, case, pieces=None):
    task, own, flags, tracestate = context(relay.send(case.headers, pieces=pieces)[0])
    assert (task == TASK) == case.same, f"{'another' if case.same else 'the same'} task goes on"
    assert own != PARENT, "each request has an id of its own"
    assert (flags, tracestate) == (case.flags, case.state)
    if not case.same:
        assert task not in "".join(value for _, value in case.headers).lower()


def names(cases):
    return [case.name for case in cases]


@pytest.mark.parametrize("case", TRACEPARENT, ids=names(TRACEPARENT))
def test_traceparent(relay, case):
    check(relay, case)


@pytest.mark.parametrize("case", TRACESTATE, ids=names(TRACESTATE))
def test_tracestate(relay, case):
    check(relay, case)


@pytest.mark.parametrize("why, case", DOCUMENTED, ids=[case.name for _, case in DOCUMENTED])
def test_documented(relay, why, case):
    assert why
    check(relay, case)


@pytest.mark.parametrize("pieces", [1, 7])
def test_however_the_bytes_are_cut(relay, pieces):
    for case in (continued("cut", state("foo=1 , bar=2"), GOOD, state("baz=3"), state="foo=1,bar=2,baz=3"),
                 continued("cut, bad", state("foo=1,bar"), GOOD), restarted("cut, no task", parent(tp("ff")), state("a=1"))):
        check(relay, case, pieces)


@pytest.mark.parametrize("headers", [[], [GOOD, state("foo=1,bar=2")]], ids=["a new task", "a task that goes on"])
def test_each_request_of_a_task_has_an_id_of_its_own(relay, headers):
    found = [context(fields) for fields in relay.send(headers, calls=5)]
    assert len({task for task, *_ in found}) == 1, "one task"
    assert len({own for _, own, *_ in found}) == 5, "five requests"
    assert {tracestate for *_, tracestate in found} == {"foo=1,bar=2" if headers else None}


def test_each_new_task_has_an_id_of_its_own(relay):
    assert len({context(relay.send([])[0])[0] for _ in range(5)}) == 5

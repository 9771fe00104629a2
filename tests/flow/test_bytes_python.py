# SPDX-License-Identifier: Apache-2.0
"""CPython's clients, under active embed and without weft, against a peer that records every
byte both ways: the same bytes, plus one trace field at the end of each head. (What else a
client may do to the stream, cut at random, vectored or with bare line feeds: test_bytes.py.)"""
import re

import pytest
import recorder
import sigv4
from fixtures_wire import PROGRAMS, twice
from processes import PYTHON


@pytest.fixture
def compared(stage, controller, rng):
    """A function: runs these cases twice and compares; the number of marked heads."""
    def run(*cases, **options):
        with recorder.Peer() as peer:
            plain, marked = twice(stage, peer, [PYTHON, PROGRAMS / "clients.py", peer.port, *cases])
            return recorder.check(plain, marked, rng, **options)
    return run


def test_http_client(compared):
    """1,000 requests on a connection; 50 MB; every kind of answer."""
    assert compared("thousand", "upload", "shapes") == 1000 + 1 + 16


def test_requests(compared):
    assert compared("requests_session") == 26


def test_httpx(compared):
    assert compared("httpx_client") == 20 + 5 + 10


def test_aiohttp(compared):
    """Expect: 100-continue among them."""
    assert compared("aiohttp_client") == 25


def test_signed_headers(compared):
    """What is inserted behind the signature's back does not break it; 8 forged requests are refused."""
    assert compared("signed") == 16


def test_the_verifier_of_signatures():
    """The one worked example that AWS prints for this form, with its own key."""
    headers = {"host": "iam.amazonaws.com", "x-amz-date": "20150830T123600Z",
               "content-type": "application/x-www-form-urlencoded; charset=utf-8"}
    nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert sigv4.signature("GET", "/?Action=ListUsers&Version=2010-05-08", headers, sorted(headers), nothing) == \
        "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"


def test_web_sockets(compared):
    """The request that asks for the upgrade is marked, no byte behind it is altered."""
    assert compared("websockets_echo", "aiohttp_echo") == 2


def test_proxy_tunnel(compared):
    """CONNECT itself is not marked, nor what passes behind it; where it is refused, what follows is."""
    assert compared("tunnel", "tunnel_refused") == 3


def test_one_byte_writes_chunked(compared):
    assert compared("dribble") == 3


def test_pipelining(compared):
    """Sixteen under way are all marked."""
    assert compared("pipelined") == 80


def test_a_flood_of_requests(compared):
    """A hundred in two writes: the first is marked, beyond what is kept account of nothing is, and
    nothing is altered."""
    def first(head):
        number = int(re.match(rb"\S+ /[fg]/(\d+)", head)[1])
        return True if head.startswith(b"POST ") or number >= 16 else None if number else False
    assert compared("flood", bare=first) <= 16


def test_sendfile_and_splice(compared):
    assert compared("sendfile", "splice") == 12


def test_children_in_mid_body(compared):
    """What a vfork child closes is its own; the connection of its parent goes on in its body."""
    assert compared("children") == 4


def test_two_names_of_a_socket(compared):
    """Used under two descriptors, or by two processes, a connection is left alone from then on."""
    def later(head):
        return not head.startswith((b"GET /before", b"POST /"))
    assert compared("two_names", bare=later) == 2


def test_a_child_that_inherits_the_socket(compared):
    """It writes in the middle, or at the end, of its parent's body. No proof is due at that moment;
    from then on the connection is left alone."""
    def later(head):
        return b"/after " in head or b"/children " in head
    assert compared("inherited", "inherited_rest", bare=later) == 4

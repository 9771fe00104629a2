# SPDX-License-Identifier: Apache-2.0
"""What the terminal shows of executions whose times are chosen: `weft tasks` with its orders and
filters, `weft show` of trees of every form and at every width, `weft top`, and progress."""
import csv
import io
import json
import re
import signal
import time
import unicodedata

import processes
import pytest
import replays
import synthetic
from synthetic import Call
from terminal import Terminal
from test_bad_input import one_line

AGO_MS = 3600_000  # the recording begins an hour ago
LATE_MS = 2400_000  # and what comes late in it, 20 minutes ago


def width(line):
    return sum(0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in line)


def make(recording):
    """Times in ms that can be added up in one's head."""
    for number in range(100):  # 1 to 100 ms, in no order
        recording.add(Call("front", "GET /even", 0, (number * 37) % 100 + 1), number * 10)
    for number in range(10):  # three of them fail, the slow ones
        recording.add(Call("front", "POST /pay", 0, 200 + 10 * number, status=500 if number >= 7 else 200), 2000 + number * 10)
    recording.add(Call("batch", "POST /night/run", 0, 5000), 3000)
    for number in range(5):  # a request to nobody is an error, whatever came of it
        recording.add(Call("shop", "GET /cart", 0, 20, [Call("gone", "GET /x", 1, 2, error="refused", captured=False)]), LATE_MS + number)


@pytest.fixture(scope="module")
def house():
    recording = synthetic.Recording(real_ns=time.time_ns() - AGO_MS * 1_000_000)
    make(recording)
    deep = call = Call("s0", "GET /0", 0, 9000)
    for level in range(1, 3000):
        call.children.append(Call("s%d" % (level % 3), "GET /%d" % level, level, 9000 - level))
        call = call.children[0]
    wide = Call("hub", "GET /wide", 0, 9000, [Call("leaf", "GET /kind%d" % number, number, number + (500 if number == 1234 else 1))
                                              for number in range(3000)])
    alike = Call("hub", "GET /alike", 0, 9000, [Call("leaf", "GET /item/{id}", 3 * number, 3 * number + 2, status=503 if number == 7 else 200)
                                                for number in range(3000)])
    with replays.private() as stage:
        stage.tasks = {name: recording.add(tree, LATE_MS + 10000) for name, tree in (("deep", deep), ("wide", wide), ("alike", alike))}
        replays.replay(stage, recording.write(stage.directory / "house.weftr"))
        processes.wait_until(lambda: len(stage.json("tasks", "--each", "--limit", "200")) == 119, 15, "119 tasks")
        yield stage


def names(house, *options):
    return [each["name"] for each in house.json("tasks", *options)]


# ---- weft tasks -------------------------------------------------------------------


def test_order_of_names(house):
    small = "GET /even", "POST /pay", "POST /night/run", "GET /cart"

    def order(*options):
        return [name for name in names(house, *options) if name in small]

    assert order() == order("--sort", "count") == ["GET /even", "POST /pay", "GET /cart", "POST /night/run"]
    # 5050, 2450, 5000 and 100 ms
    assert order("--sort", "total") == ["GET /even", "POST /night/run", "POST /pay", "GET /cart"]
    assert order("--sort", "p50") == ["POST /night/run", "POST /pay", "GET /even", "GET /cart"]
    assert order("--sort", "p99") == ["POST /night/run", "POST /pay", "GET /even", "GET /cart"]
    assert order("--sort", "errors")[:2] == ["GET /cart", "POST /pay"]
    assert names(house, "--sort", "p50", "--limit", "2") == ["GET /alike", "GET /wide"] or len(names(house, "--limit", "2")) == 2
    even = next(each for each in house.json("tasks") if each["name"] == "GET /even")
    assert even["total_ns"] == 5050 * 1_000_000 and even["p50_ns"] in (50_000_000, 51_000_000) and even["max_ns"] == 100_000_000


def test_filters(house):
    assert names(house, "--name", "POST /*") == ["POST /pay"]
    assert names(house, "--name", "POST /**") == ["POST /pay", "POST /night/run"]
    assert names(house, "--name", "/night/run") == ["POST /night/run"]
    assert names(house, "--service", "shop") == ["GET /cart"]
    assert not names(house, "--service", "sho")
    pay, = house.json("tasks", "--errors", "--service", "front")
    assert (pay["name"], pay["executions"], pay["errors"], pay["p50_ns"]) == ("POST /pay", 3, 3, 280_000_000)
    slow = {each["name"]: each["executions"] for each in house.json("tasks", "--slower", "90ms")}
    assert slow["GET /even"] == 11 and slow["POST /pay"] == 10 and "GET /cart" not in slow  # 90 ms itself, too
    assert set(names(house, "--since", "40m")) == {"GET /cart", "GET /0", "GET /wide", "GET /alike"}
    assert names(house, "--since", "40m") == names(house, "--last", "40m")
    assert names(house, "--since", "40m", "--errors", "--slower", "1s") == []


def test_edges(house):
    """Who calls whom: 5 carts, whose request to nobody is refused after 1 ms; 3,000 items, one of them a 503."""
    def rows(name):
        lines = io.StringIO(house.weft("tasks", "--edges", "--csv", "--name", name).stdout)
        return {(row["from_service"], row["name"]): row for row in csv.DictReader(lines)}

    cart = rows("GET /cart")["shop", "GET /x"]
    alike = rows("GET /alike")
    item, top = alike["hub", "GET /item/{id}"], alike["", "GET /alike"]
    assert (cart["task"], cart["task_service"], cart["calls"], cart["errors"], cart["hop"]) == ("GET /cart", "shop", "5", "5", "embed_only")
    wire = 2 * synthetic.WIRE_NS
    assert (item["calls"], item["errors"], item["p50_ns"], item["max_ns"]) == ("3000", "1", str(2_000_000 + wire), str(2_000_000 + wire))
    assert (top["service"], top["calls"], top["p99_ns"]) == ("hub", "1", "9000000000")
    lines = house.json("tasks", "--edges", "--name", "GET /cart")
    assert [(line["task"], line["from_service"], line["name"], line["calls"]) for line in lines] == [
        ("GET /cart", "", "GET /cart", 5), ("GET /cart", "shop", "GET /x", 5)]
    text = house.weft("tasks", "--edges", "--service", "shop").stdout.splitlines()
    assert text[0].split()[:5] == ["TASK", "CALLER", "CALLEE", "CALLS", "ERRORS"] and len(text) == 3
    one_line(house.weft("tasks", "--edges", "--each", check=False), "exclude each other")
    done = house.weft("tasks", "--edges", "--name", "GET /wide", "--json")  # 3,000 of them are 1 ms long: 1,024 are told apart
    assert len(done.stdout.splitlines()) < 1025 and "calls of further edges" in done.stderr


def test_filters_of_executions(house):
    each = house.json("tasks", "--each", "--name", "GET /even", "--sort", "slowest", "--limit", "3")
    assert [one["duration_ns"] for one in each] == [100_000_000, 99_000_000, 98_000_000]
    each = house.json("tasks", "--each", "--name", "POST /pay", "--errors")
    assert [one["duration_ns"] // 1_000_000 for one in each] == [290, 280, 270]
    starts = [one["start_ns"] for one in house.json("tasks", "--each", "--limit", "50")]
    assert starts == sorted(starts, reverse=True) and len(starts) == 50
    rows = list(csv.DictReader(io.StringIO(house.weft("tasks", "--each", "--slower", "4900ms", "--csv", "--service", "batch").stdout)))
    assert [(row["name"], row["duration_ns"]) for row in rows] == [("POST /night/run", "5000000000")]


def test_names_for_people(house):
    text = house.weft("tasks", "--service", "front").stdout
    assert text.splitlines()[0].split()[:3] == ["TASK", "SERVICE", "COUNT"]
    assert re.search(r"^POST /pay +front +10 +2[45]0 +(280 +)?290 +(290 +)?10 +3 ", text, re.M), text
    # Where there is no room, columns go before names are cut.
    narrow = house.weft("tasks", "--service", "front", env={"COLUMNS": "72"}).stdout
    assert "POST /pay  front" in narrow and "max ms" not in narrow and max(map(width, narrow.splitlines())) <= 72
    wide = house.weft("tasks", "--service", "front", env={"COLUMNS": "120"}).stdout
    assert re.search(r"^POST /pay +front +10 +2[45]0 +280 +290 +290 +10 +3 ", wide, re.M), wide
    assert house.weft("tasks", "--name", "GET /none").stdout.startswith("no tasks")


@pytest.mark.parametrize("arguments, needed", [
    (["tasks", "--sort", "fast"], ("bad order 'fast'", "count, total, p50, p99 or errors")),
    (["tasks", "--each", "--sort", "p50"], ("bad order 'p50'", "newest or slowest")),
    (["tasks", "--name", "no slash"], ("bad pattern", "--name")),
    (["tasks", "--slower", "100"], ("bad duration '100'", "--slower")),
    (["tasks", "--since", "-5m"], ("bad duration", "--since")),
    (["tasks", "--limit", "0"], ("bad number '0'", "--limit")),
    (["tasks", "--instruction", "x"], ("bad instruction", "weft ls")),
    (["top", "--sort", "name"], ("bad order 'name'", "count, total")),
    (["top", "extra"], ("not expected: extra", "weft top --help")),
    (["top", "--json", "--csv"], ("exclude each other",)),
    (["show", "zz"], ("bad task 'zz'", "tasks --each")),
    (["show", "0123456789"], ("no task begins with", "tasks --each")),
    (["show"], ("what is missing: TASK", "weft show --help"))])
def test_bad_input(house, arguments, needed):
    one_line(house.weft(*arguments, check=False), *map(re.escape, needed))


# ---- weft show ----------------------------------------------------------------------


@pytest.mark.parametrize("columns", [40, 60, 80, 120, 200])
@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
def test_every_tree_fits(house, columns, locale):
    for name, task in house.tasks.items():
        text = house.weft("show", task, env={"COLUMNS": str(columns), "LC_ALL": locale}).stdout
        lines = text.splitlines()
        assert len(lines) < 60, (name, len(lines))
        assert max(map(width, lines)) <= columns, name
        assert locale != "C" or text.isascii()
        assert "3,000" in text or "2,9" in text


def test_what_is_folded_is_said(house):
    deep = house.weft("show", house.tasks["deep"]).stdout
    assert "2,967 deeper" in deep and "2,967 folded: --full shows them" in deep  # the root and 32 levels stand
    wide = house.weft("show", house.tasks["wide"]).stdout
    assert "2,960 others, shorter" in wide and "GET /kind1234" in wide
    alike = house.weft("show", house.tasks["alike"]).stdout
    assert "2,998 more like it" in alike and "1 failed" in alike and "folded:" not in alike
    full = house.weft("show", house.tasks["wide"], "--full").stdout
    assert len(full.splitlines()) == 3003 and "shorter" not in full


def test_width_of_the_terminal(house):
    task = house.tasks["alike"]
    for columns in (72, 132):
        with Terminal([house.build / "weft", "show", task], house.env(TERM="xterm"), columns=columns) as terminal:
            terminal.until("clock:")
            lines = terminal.screen()
            assert columns - 30 < max(map(width, lines)) <= columns, lines
            assert b"\x1b[1m" in terminal.bytes  # colours
    with Terminal([house.build / "weft", "show", task], house.env(TERM="xterm", NO_COLOR="1")) as terminal:
        terminal.until("clock:")
        assert b"\x1b" not in terminal.bytes
    assert max(map(width, house.weft("show", task).stdout.splitlines())) <= 80


# ---- weft top -----------------------------------------------------------------------


def test_top_once(house):
    text = house.weft("top", "--since", "10000s").stdout
    assert text.startswith("last 10000 s · 119 tasks, 0.01 a second · complete 119") and "\x1b" not in text
    assert re.search(r"^GET /even +front +0\.01 +100 +5[01]\.0 +99\.0 +100 +0$", text, re.M), text
    by_p99 = [json.loads(line) for line in house.weft("top", "--since", "10000s", "--json", "--sort", "p99").stdout.splitlines()]
    assert by_p99[0]["p99_ns"] >= by_p99[1]["p99_ns"] >= by_p99[-1]["p99_ns"]
    pay = next(each for each in by_p99 if each["name"] == "POST /pay")
    assert pay["per_s"] == 0.001 and pay["errors"] == 3 and pay["executions"] == 10
    rows = list(csv.DictReader(io.StringIO(house.weft("top", "--since", "10000s", "--csv", "--limit", "1").stdout)))
    assert [(row["name"], row["per_s"]) for row in rows] == [("GET /even", "0.010")]


@pytest.mark.parametrize("end", ["q", "\x03", "SIGTERM", "SIGHUP"])
def test_top_on_a_terminal(house, end):
    with Terminal([house.build / "weft", "top", "--since", "2h"], house.env(TERM="xterm"), rows=6, columns=78) as terminal:
        terminal.until("GET /even")
        assert terminal.bytes.startswith(b"\x1b[?1049h")
        seen = len(terminal.bytes)
        terminal.until("119 tasks")
        processes.wait_until(lambda: terminal.read(0.1) or len(terminal.bytes) > seen, 5, "the next second")
        assert len(terminal.screen()) <= 6 and max(map(width, terminal.screen())) <= 78
        terminal.resize(12, 100)
        processes.wait_until(lambda: terminal.read(0.1) or any("POST /night/run" in line for line in terminal.screen()), 5, "more lines")
        assert terminal.modes() != terminal.before
        if end.startswith("SIG"):
            terminal.process.send_signal(getattr(signal, end))
        else:
            terminal.type(end) if end == "q" else terminal.process.send_signal(signal.SIGINT)
        assert terminal.process.wait(60) == 0
        terminal.ends_with(b"\x1b[?7h\x1b[?25h\x1b[?1049l")
        assert terminal.modes() == terminal.before


def test_top_of_a_controller_that_ends():
    """The terminal is put back first, then one line says what is wrong."""
    recording = synthetic.Recording()
    recording.add(Call("front", "GET /a", 0, 1))
    with processes.Stage() as stage:
        controller = stage.controller()
        replays.replay(stage, recording.write(stage.directory / "a.weftr"))
        with Terminal([stage.build / "weft", "top"], stage.env(TERM="xterm")) as terminal:
            terminal.until("last 60 s")
            stage.stop(controller)
            assert terminal.process.wait(100) == 1
            terminal.ends_with(b"\r\n")
            after = terminal.bytes.split(b"\x1b[?1049l")[1].decode()
            assert re.fullmatch(r"weft: no answer of the controller at .*; see whether .*\r\n", after), after
            assert terminal.modes() == terminal.before


# ---- progress -------------------------------------------------------------------------


def test_progress_is_for_terminals(house):
    recording = synthetic.Recording()
    for number in range(400):
        recording.add(Call("front", "GET /slow", 0, 5), number * 5)
    path = recording.write(house.directory / "slow.weftr")
    with processes.Stage() as stage:
        stage.controller()
        command = [stage.build / "weft", "replay", path]
        with Terminal(command, stage.env(TERM="xterm"), stdout=False) as terminal:
            terminal.until("replaying: ")
            out, _ = terminal.process.communicate(timeout=300)
            terminal.drain()
            assert terminal.process.returncode == 0 and b"all acknowledged" in out and b"\r" not in out
            assert re.search(rb"\r\x1b\[Kreplaying: \d+ of 3 batches, \d+ reports", terminal.bytes), terminal.bytes[:300]
            assert terminal.screen() == [""]  # and gone
        done = stage.weft("replay", path, "--speed", "max")
        assert done.stderr == ""
        page = stage.directory / "page.html"
        with Terminal([stage.build / "weft", "report", "-o", page], stage.env(TERM="xterm"), stdout=False) as terminal:
            out, _ = terminal.process.communicate(timeout=300)
            terminal.drain()
            assert b"asking the controller" in terminal.bytes and b"writing " in terminal.bytes and terminal.screen() == [""]
            assert b"\r" not in out and page.stat().st_size > 10000

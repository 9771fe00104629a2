# SPDX-License-Identifier: Apache-2.0
"""`weft report`: one page that asks nobody for anything, in a real browser: what is in it, hostile
names, sorting, zooming, searching, keys, light and dark, and how long a frame of it takes."""
import json
import pathlib
import random
import re

import browser
import processes
import pytest
import replays
import synthetic
from conftest import missing
from synthetic import Call
from test_bad_input import one_line

FRAME_MS = 50
HOSTILE = ["GET /</script><script>alert(1)</script>", "GET /\"'><img src=x onerror=alert(2)>", "GET /a\u2028b\u2029c",
           "GET /\u200f\u202ereversed\u202c", "GET /&lt;b&gt;&amp;", "GET /<!--", "GET /\\u003cb\\", "GET /]]>@DATA@@SCRIPT@",
           "GET /\x1b[31m\x07", "GET /gr\u00f6\u00dfe/\U0001f600"]


def checkout(factor, quotes, status=200):
    """From outside: 11 ms of its own, then `quotes` calls of 10 ms one after the other."""
    kids = [Call("10.0.0.5:5432", "postgresql", 4 * factor, 24 * factor, opaque=True, calls=38)]
    at = 30
    for _ in range(quotes):
        kids.append(Call("pricing", "GET /quote/{id}", at * factor, (at + 10) * factor))
        at += 12
    return Call("front", "POST /checkout", 0, (at + 10) * factor,
                [Call("orders", "POST /orders", 2 * factor, (at + 6) * factor, kids)], status=status)


@pytest.fixture(scope="module")
def shop():
    """300 checkouts, 10 of them with nine quotes in place of one and 5 that failed; 40 carts; every
    hostile name; one execution of 600 parts. And the controller that has them."""
    rng, recording = random.Random(11), synthetic.Recording()
    for number in range(300):
        recording.add(checkout(rng.uniform(0.8, 1.2), 9 if number % 33 == 1 else 1, 500 if number % 60 == 7 else 200), number * 20)
    for number in range(40):
        recording.add(Call("front", "GET /cart", 0, 5 + number / 10), number * 20)
    for number, name in enumerate(HOSTILE):
        recording.add(Call("front", name, 0, 3, [Call(name[:40], name, 1, 2)]), 7000 + number)
    parts = [Call("worker", "POST /part/%d" % number, number, number + 5) for number in range(600)]
    recording.add(Call("batch", "POST /nightly", 0, 1010, parts), 9000)
    with replays.private() as stage:
        path = stage.directory / "shop.weftr"
        recording.write(path)
        replays.replay(stage, path)
        processes.wait_until(lambda: len(stage.json("tasks", "--each")) == 351, 10, "351 tasks")
        yield stage


@pytest.fixture(scope="module")
def window():
    try:
        made = browser.Browser()
    except processes.Missing as error:
        missing(error)
    with made:
        yield made


def report(stage, *arguments):
    path = stage.directory / "page.html"
    done = stage.weft("report", "-o", path, *arguments)
    assert done.stderr == "" and str(path) in done.stdout, done.stdout + done.stderr
    return path


def data_of(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S).group(1))


@pytest.fixture
def page(shop, window):
    """All of the shop, open."""
    path = report(shop)
    window.colours("light")
    window.open(path)
    return window


def rows(page, box):
    """(place, text) of the rows that exist, in order; they are drawn with the next frame."""
    page.settled()
    return page.ask("[...document.querySelectorAll ('#%s .row')].filter (r => !r.hidden).sort ((a, b) => a.index - b.index)"
                    ".map (r => [r.index, r.innerText.replace (/\\s+/g, ' ').trim ()])" % box)


def shown(name):
    """As the page writes it: what would hide or reorder text is spelt out."""
    return re.sub("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]", lambda found: "\\u%04x" % ord(found.group()), name)


def names(page):
    return page.ask("[...document.querySelectorAll ('#names tbody tr')].map (r => r.cells[0].innerText)")


def chosen(page, box="fall"):
    page.settled()
    return page.ask("(() => { const r = document.querySelector ('#%s .row[aria-selected=true]'); return r && [r.index, r.innerText.replace (/\\s+/g, ' ')"
                    ".trim (), document.getElementById ('%s').getAttribute ('aria-activedescendant') === r.id]; }) ()" % (box, box))


def span(page):
    """The share of the execution that the waterfall shows."""
    page.settled()
    return page.ask("(() => { const b = document.getElementById ('brush'); return b.hidden ? 1 : parseFloat (b.style.width) / 100; }) ()")


# ---- the file ------------------------------------------------------------------


def test_the_page_is_one_file_that_asks_for_nothing(shop, page):
    assert page.said == []
    assert len(page.asked) == 1 and page.asked[0].startswith("file://")
    # The policy holds: neither a request nor a script that somebody put there goes through.
    refused = page.ask("fetch ('file:///etc/hostname').then (() => 'asked', () => 'refused')")
    page.ask("(() => { const s = document.createElement ('script'); s.textContent = 'window.stranger = 1'; document.body.append (s);"
             " const i = document.createElement ('img'); i.src = 'data:image/gif;base64,R0lGODlhAQABAAAAACw='; i.onload = () => window.stranger = 2;"
             " document.body.append (i); }) ()")
    page.settled()
    assert refused == "refused" and page.ask("window.stranger") is None
    text = (shop.directory / "page.html").read_text()
    assert not re.search(r"(src|href)\s*=|url\(|@import|https?://(?!www\.w3\.org/2000/svg)", text.split('id="data">')[0]), "an address in the frame"


def test_what_is_in_it(shop, page):
    data = data_of(shop.directory / "page.html")
    assert len(data["executions"]) == 351 and not data["more"]
    assert data["analysis"]["executions"] == 351
    assert names(page)[:2] == ["POST /checkout", "GET /cart"]
    known = page.ask("document.getElementById ('known').innerText")
    assert "complete 351 of 351" in known and "orphans 0" in known and "lost 0" in known
    why = page.ask("document.getElementById ('why-text').innerText")
    assert re.search(r"orders → pricing GET /quote/\{id\}: 9 calls instead of 1", why), why
    # 300 checkouts, 10 of them with 9 quotes: 290 + 90 calls, and what was asked of the database.
    drawn = page.ask("document.querySelector ('#map svg').textContent")
    assert "380 × " in drawn and "300 × " in drawn and "11,400 × " in drawn and "postgresql 10.0.0.5:5432" in drawn, drawn
    assert page.ask("document.querySelectorAll ('#map .node').length") == 4
    # The slowest is open: nine quotes, two of them stand for themselves.
    assert [text for _, text in rows(page, "fall")][2:] [0].startswith("postgresql 10.0.0.5:5432 × 38")
    assert any("7 more like it" in text for _, text in rows(page, "fall"))
    assert page.ask("document.querySelectorAll ('#fall .critical').length") >= 3
    assert page.ask("document.querySelectorAll ('#spread rect.bin').length") > 5
    assert "complete" in page.ask("document.getElementById ('fall-note').innerText")


def test_one_task_is_open_at_once(shop, window):
    wanted = shop.json("tasks", "--each", "--name", "GET /cart", "--sort", "slowest", "--limit", "1")[0]
    path = report(shop, wanted["task"][:12])
    window.open(path)
    assert len(data_of(path)["executions"]) == 40
    assert window.ask("document.getElementById ('title').innerText") == "GET /cart"
    assert chosen(window, "list")[1].split()[-1] == wanted["task"]
    assert chosen(window)[1].startswith("front GET /cart 8.90")


def test_hostile_names_are_text(shop, page):
    """None of them runs, closes an element, or hides; each is there to be read."""
    assert page.said == [] and page.ask("document.querySelectorAll ('script').length") == 2
    assert page.ask("document.images.length") == 0 or page.ask("[...document.images].every (i => i.src.startsWith ('data:'))")
    there = names(page)
    for wanted in ("GET /</script><script>alert(1)</script>", "GET /\"'><img src=x onerror=alert(2)>", "GET /a\\u2028b\\u2029c",
                   "GET /\\u200f\\u202ereversed\\u202c", "GET /&lt;b&gt;&amp;", "GET /<!--", "GET /]]>@DATA@@SCRIPT@", "GET /\\u001b[31m\\u0007",
                   "GET /gr\u00f6\u00dfe/\U0001f600"):
        assert wanted in there, there
    raw = (shop.directory / "page.html").read_bytes()
    data = raw.split(b'id="data">')[1].split(b"</script>")[0]
    assert data.isascii() and not re.search(rb"[<>&]", data)
    # And where they are services, in the tree, the detail and the map.
    for name in HOSTILE:
        page.ask("[...document.querySelectorAll ('#names tbody tr')].find (r => r.cells[0].innerText === %s).click ()" % json.dumps(shown(name)))
        assert shown(name) in page.ask("document.getElementById ('fall-head').innerText") and shown(name) in chosen(page)[1]
    assert page.said == []


def test_a_megabyte_of_names(window):
    """7,000 names of 150 bytes: the page stays a page."""
    recording = synthetic.Recording()
    for number in range(7):
        kids = [Call("s%d" % (kid % 50), ("GET /%04d/" % (number * 1000 + kid)) + "<&>\"'é" * 20, kid, kid + 1) for kid in range(1000)]
        recording.add(Call("front", "GET /all", 0, 1001, kids), number * 10)
    with replays.private() as stage:
        replays.replay(stage, recording.write(stage.directory / "names.weftr"))
        processes.wait_until(lambda: sum(len(each["subtasks"]) for each in stage.json("tasks", "--each")) == 7007, 10, "7007 subtasks", 0.3)
        path = report(stage)
        assert path.stat().st_size > 1_000_000
        window.open(path)
        assert window.said == [] and len(rows(window, "fall")) > 10


def test_a_real_run_with_orphans(window):
    """Recorded from real VMs: 40 tasks, 16 of them with an error, and 5 trees whose caller is unknown."""
    with replays.private() as stage:
        replays.replay(stage, replays.RECORDINGS / "trouble.weftr")
        processes.wait_until(lambda: len(stage.json("tasks", "--each")) == 45, 10, "45 trees")
        window.open(report(stage, "--name", "**"))
    assert names(window) == ["GET /front", "orphan GET /orders"]
    known = window.ask("document.getElementById ('known').innerText")
    assert "complete 39 of 40" in known and "orphans 5: timer 5" in known
    window.ask("document.querySelectorAll ('#names tbody tr')[1].click ()")
    assert len(rows(window, "list")) == 5 and all("orphan" in text for _, text in rows(window, "list"))
    assert "orphan from unknown in service timer" in window.ask("document.getElementById ('fall-note').innerText")
    assert window.said == []


# ---- using it --------------------------------------------------------------------


def test_sorting(page):
    def order(key):
        return page.ask("[...document.querySelectorAll ('#names th')].find (h => h.innerText.startsWith ('%s')).getAttribute ('aria-sort')" % key)

    assert order("Executions") == "descending"
    page.click("#names [data-key=p50]")
    assert names(page)[0] == "POST /nightly" and order("p50") == "descending" and order("Executions") is None
    page.click("#names [data-key=p50]")
    assert names(page)[-1] == "POST /nightly" and order("p50") == "ascending"
    page.click("#names [data-key=name]")
    raw = sorted([*HOSTILE, "POST /checkout", "GET /cart", "POST /nightly"], key=lambda name: name.encode("utf-16-be"))
    assert [name[:7] for name in names(page)] == [shown(name)[:7] for name in raw]
    page.click("#list [data-key=start_us]")
    starts = [text.split(" ")[1] for _, text in rows(page, "list")]
    assert starts == sorted(starts, reverse=True) and len(starts) > 5


def test_zooming(page):
    page.ask("document.getElementById ('fall').focus ()")
    assert span(page) == 1
    page.press("+")
    page.press("+")
    assert abs(span(page) - 1 / 2.25) < 0.01
    left = page.ask("document.getElementById ('brush').style.left")
    page.press("ArrowRight", shift=True)
    assert page.ask("document.getElementById ('brush').style.left") != left
    page.press("-")
    assert abs(span(page) - 1 / 1.5) < 0.01
    page.press("Escape")
    assert span(page) == 1
    x, y = page.centre("#over")
    width = page.ask("document.getElementById ('over').clientWidth")
    page.mouse("mousePressed", x, y)
    page.mouse("mouseMoved", x + width / 8, y)
    page.mouse("mouseReleased", x + width / 8, y)
    assert abs(span(page) - 1 / 8) < 0.02
    # What is left of it is where it was: the root spans all that is seen.
    assert page.ask("(() => { const t = document.querySelector ('#fall .row .track').getBoundingClientRect ();"
                    " const s = document.querySelector ('#fall .row .span').getBoundingClientRect (); return s.left <= t.left && s.right >= t.right; }) ()")
    page.click("#fit")
    assert span(page) == 1
    x, y = page.centre("#fall")
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-300, modifiers=2, button="none")
    page.settled()
    assert 0.3 < span(page) < 0.45


def test_keys_in_the_tree(page):
    page.ask("document.getElementById ('fall').focus ()")
    page.press("Home")
    assert chosen(page)[:2] == [0, chosen(page)[1]] and "POST /checkout" in chosen(page)[1] and chosen(page)[2]
    page.press("ArrowDown")
    assert "POST /orders" in chosen(page)[1]
    before = len(rows(page, "fall"))
    page.press("ArrowLeft")
    assert len(rows(page, "fall")) == 2
    assert page.ask("document.querySelector ('#fall .row[aria-selected=true]').getAttribute ('aria-expanded')") == "false"
    page.press("ArrowRight")
    assert len(rows(page, "fall")) == before
    page.press("End")
    assert "7 more like it" in chosen(page)[1]
    page.press("Enter")
    assert len(rows(page, "fall")) == before + 6 and "GET /quote/{id}" in chosen(page)[1]
    assert "GET /quote/{id}" in page.ask("document.getElementById ('detail').innerText")
    page.press("ArrowLeft")
    assert "POST /orders" in chosen(page)[1]


def test_what_has_the_focus_is_seen(page):
    page.ask("document.getElementById ('find').focus ()")
    seen = []
    for _ in range(26):
        page.press("Tab")
        seen.append(page.ask("(() => { const e = document.activeElement, s = getComputedStyle (e); return [e.id || e.tagName,"
                             " s.outlineStyle !== 'none' && parseFloat (s.outlineWidth) >= 2]; }) ()"))
    assert all(outlined for what, outlined in seen if what != "BODY"), [what for what, outlined in seen if not outlined]
    assert {"BUTTON", "TR"} <= {what for what, _ in seen}


def test_links(window):
    """A quote that was received twice, and a request for the stock that went to two places under one
    id: each is one jump from the other, also where it is folded away."""
    quotes = [Call("pricing", "GET /quote/{id}", 10 + 10 * number, 18 + 10 * number) for number in range(6)]
    recording = synthetic.Recording()
    recording.add(Call("front", "POST /checkout", 0, 100, [Call("orders", "POST /orders", 2, 90, quotes),
                                                           Call("stock", "GET /stock", 92, 98)]))
    first = next(each for each in recording.reports["pricing"] if each[0] == synthetic.CAPTURE)
    later = 70 * synthetic.MS
    recording.reports["pricing"].append((*first[:9], recording.id(), first[10] + later, first[11] + later, *first[12:]))
    here, there, elsewhere, other = (synthetic.address("127.0.0.1:%d" % port) for port in (40000, 8004, 8099, 41000))
    for service, name, ends in (("front", "GET /stock", (here, there)), ("stock", "GET /stock", (there, here))):
        index = next(i for i, each in enumerate(recording.reports[service]) if each[15] == name)
        made = recording.reports[service][index]
        recording.reports[service][index] = (*made[:13], *ends, *made[15:])
    sent = next(each for each in recording.reports["front"] if each[13] == here)
    orders = next(each for each in recording.reports["orders"] if each[0] == synthetic.CAPTURE)
    recording.reports["orders"].append((*sent[:9], orders[9], *sent[10:13], other, elsewhere, sent[15]))
    taken = next(each for each in recording.reports["stock"] if each[13] == there)
    recording.reports["depot"] = [(*taken[:9], recording.id(), *taken[10:13], elsewhere, other, taken[15])]
    with replays.private() as stage:
        replays.replay(stage, recording.write(stage.directory / "links.weftr"))
        processes.wait_until(lambda: stage.json("tasks", "--each"), 10, "a task")
        execution = stage.json("tasks", "--each")[0]
        window.open(report(stage))
    linked = {each["id"]: [(link["kind"], link["subtask"]) for link in each["links"]] for each in execution["subtasks"] if each["links"]}
    again = "%016x" % first[9], "%016x" % recording.reports["pricing"][-1][9]
    assert linked[again[0]] == [("same_request", again[1])] and linked[again[1]] == [("same_request", again[0])], linked

    def links():
        return window.ask("[...document.querySelectorAll ('#detail .link')].map (l => [l.parentNode.previousSibling.innerText, l.innerText, l.title])")

    def find(text):
        window.press("/")
        window.ask("document.getElementById ('find').select ()")
        window.type(text)
        processes.wait_until(lambda: window.ask("document.getElementById ('found').innerText") not in ("", "not here"), 5, text)
        window.press("Enter")
        assert text in window.ask("document.getElementById ('detail').innerText")

    find(again[0])
    assert links() == [["same request", "pricing GET /quote/{id} at + 80.0 ms", again[1]]]
    assert not any("80.0" in text for _, text in rows(window, "fall"))
    window.click("#detail .link")  # the seventh of its like: it was folded away
    assert again[1] in window.ask("document.getElementById ('detail').innerText") and chosen(window)[1].startswith("pricing GET /quote/{id}")
    assert window.ask("document.activeElement.id") == "fall"
    assert links() == [["same request", "pricing GET /quote/{id} at + 10.0 ms", again[0]]]
    window.ask("document.querySelector ('#detail .link').focus ()")
    window.press("Enter")  # by keyboard, too
    assert links()[0][2] == again[1]
    stock = next(each["id"] for each in execution["subtasks"] if each["service"] == "stock")
    find(stock)
    depot = "%016x" % recording.reports["depot"][0][9]
    assert linked[stock] == [("same_request", depot), ("caller", "%016x" % orders[9])], linked
    assert links() == [["same request", "depot GET /stock at + 92.0 ms", depot],
                       ["or called by", "orders POST /orders at + 2.00 ms", "%016x" % orders[9]]]
    window.click("#detail div:last-child .link")
    assert "orders POST /orders" in chosen(window)[1]
    assert window.said == []


def test_searching(page):
    page.press("/")
    assert page.ask("document.activeElement.id") == "find"
    page.type("quote")
    processes.wait_until(lambda: page.ask("document.getElementById ('found').innerText") == "9", 5, "nine found")
    page.press("Enter")
    page.press("Enter")
    page.press("Enter")
    assert page.ask("document.getElementById ('found').innerText") == "3 of 9"
    assert "GET /quote/{id}" in chosen(page)[1]  # it was folded away
    assert names(page) == ["POST /checkout"]
    page.press("Escape")
    assert page.ask("document.getElementById ('find').value") == "" and len(names(page)) > 10
    page.press("/")
    page.type("no such thing")
    processes.wait_until(lambda: page.ask("document.getElementById ('found').innerText") == "not here", 5, "nothing found")
    page.press("Escape")


def test_light_and_dark(page):
    def looks():
        return page.ask("(() => { const s = getComputedStyle (document.body), c = document.querySelector ('#over canvas');"
                        " return [s.backgroundColor, s.color, [...c.getContext ('2d').getImageData (c.width / 2, 4, 1, 1).data].join ()]; }) ()")

    def light(colour):
        red, green, blue = map(int, re.findall(r"\d+", colour)[:3])
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    day = looks()
    page.colours("dark")
    page.settled()
    night = looks()
    assert light(day[0]) > 230 > 60 > light(day[1])
    assert light(night[0]) < 40 < 200 < light(night[1])
    assert day[2] != night[2]  # the overview is drawn anew


def nightly(count):
    """An execution of so many subtasks on four levels, of 5,000 names: forty below each job, one below the other in threes."""
    top, made, whole = Call("batch", "POST /nightly", 0, count), 1, 0
    while made < count:
        first = job = Call("worker", "POST /job/j%d" % (made % 5000), whole, whole + 40)
        top.children.append(job)
        made += 1
        for number in range(min(39, count - made)):
            below = first if number % 8 != 2 or not first.children else first.children[-1]
            below.children.append(Call("store", "GET /item/i%d" % (made % 5000), whole + number, whole + number + 1))
            made += 1
        whole += 40
    return top


def test_ten_thousand_subtasks_are_fluid(window):
    """The main thread's own time for each frame of scrolling, zooming and panning: its CPU time, so that
    what else the machine does is not counted."""
    recording = synthetic.Recording()
    recording.add(nightly(10000))
    with replays.private() as stage:
        replays.replay(stage, recording.write(stage.directory / "nightly.weftr"))
        processes.wait_until(lambda: sum(each["hops"]["proven"] for each in stage.json("tasks", "--each")) == 9999, 20, "9,999 calls", 0.3)
        window.open(report(stage))
    assert "10,000 subtasks" in window.ask("document.getElementById ('fall-note').innerText")
    window.ask("document.getElementById ('fall').scrollIntoView ({ block: 'center' })")
    if window.ask("document.getElementById ('fold').innerText") != "Fold":
        window.click("#fold")
    assert int(window.ask("document.getElementById ('fall').getAttribute ('aria-rowcount')")) == 10001
    assert window.ask("document.querySelectorAll ('#fall .row').length") < 60
    rows_drawn = window.ask("(() => { const c = document.querySelector ('#over canvas');"
                            " return c.getContext ('2d').getImageData (c.width / 2, 0, 1, c.height).data.filter ((v, i) => i % 4 === 3 && v).length; }) ()")
    assert rows_drawn > 12  # of the overview: four levels
    window.call("Performance.enable", timeDomain="threadTicks")

    def busy():
        metrics = {each["name"]: each["value"] for each in window.call("Performance.getMetrics")["metrics"]}
        return 1000 * metrics["TaskDuration"]

    steps = {"scroll": "f.scrollTop = (f.scrollTop + 2011) % (f.scrollHeight - f.clientHeight)",
             "zoom": "document.getElementById (n % 20 < 10 ? 'in' : 'out').click ()",
             "key": "f.dispatchEvent (new KeyboardEvent ('keydown', { key: 'PageDown', bubbles: true }))"}
    def frames(name):
        spent = []
        for number in range(24):
            before = busy()
            window.ask("new Promise (done => { const f = document.getElementById ('fall'), n = %d; %s;"
                       " requestAnimationFrame (() => requestAnimationFrame (() => done ())); })" % (number, steps[name]))
            spent.append(busy() - before)
        spent.sort()
        print("%s: median %.1f ms, worst %.1f ms of the main thread a frame" % (name, spent[12], spent[-1]))
        return spent

    for name in steps:  # caches that others empty cost CPU time, too: the best of up to three
        assert any(frames(name)[-2] <= FRAME_MS for _ in range(3)), name
    # A search that meets everything, and one fold of all: a single answer each, not a frame's work.
    before = busy()
    window.press("/")
    window.type("item")
    processes.wait_until(lambda: window.ask("document.getElementById ('found').innerText") != "", 5, "found")
    print("search: %.1f ms" % (busy() - before))
    assert window.said == []


# ---- bad input -----------------------------------------------------------------------


def test_bad_input(shop):
    out = shop.directory / "bad.html"
    one_line(shop.weft("report", check=False), "-o FILE")
    one_line(shop.weft("report", "-o", "", check=False), "-o FILE")
    one_line(shop.weft("report", "-o", out, "12", check=False), "4 to 32")
    one_line(shop.weft("report", "-o", out, "0123456789abcdef", check=False), "no task begins with", "tasks --each")
    one_line(shop.weft("report", "-o", out, "a" * 8, "b" * 8, check=False), "not expected")
    one_line(shop.weft("report", "-o", out, "--name", "checkout", check=False), "bad pattern", "--name")
    one_line(shop.weft("report", "-o", out, "--name", "GET /no/such", check=False), "nothing to report", "--name GET /no/such")
    one_line(shop.weft("report", "-o", out, "--limit", "0", check=False), "bad number", "--limit")
    one_line(shop.weft("report", "-o", "/no/such/place/x.html", check=False), "cannot write", "No such file")
    one_line(shop.weft("report", "-o", shop.directory, check=False), "cannot write", "directory")
    one_line(shop.weft("report", "-o", "/dev/full", check=False), "cannot write", "No space left")
    assert not out.exists() and not list(pathlib.Path(shop.directory).glob("*.new"))
    assert pathlib.Path("/dev/full").is_char_device()


def test_limit_says_what_it_left_out(shop, window):
    path = shop.directory / "few.html"
    done = shop.weft("report", "-o", path, "--name", "POST /checkout", "--limit", "20")
    assert "20 executions, the newest" in done.stdout
    data = data_of(path)
    assert data["more"] == 1 and len(data["executions"]) == 20 and data["analysis"]["names"][0]["executions"] == 300
    window.open(path)
    assert "listed: the newest 20" in window.ask("document.getElementById ('known').innerText")
    alone = shop.weft("report", "-o", "-", "--limit", "1").stdout
    assert alone.startswith("<!doctype html>") and alone.endswith("</html>\n")

# SPDX-License-Identifier: Apache-2.0
"""What goes out to other tools is what is known of the executions, and nothing else: `weft export`
and `weft controller --otlp`, read by OpenTelemetry's own decoder, and Perfetto's JSON."""
import json
import re
import socket
import time

import jaeger
import otlp
import perfetto
import processes
import pytest
from conftest import missing
from fixtures_chain import instruct, path_through, send
from forests import CLIENT, SERVER, WALL, Forest
from test_bad_input import one_line

TREES = 40
FIELDS = "OTEL_EXPORTER_OTLP_HEADERS"
PACKING = "OTEL_EXPORTER_OTLP_COMPRESSION"


@pytest.fixture(autouse=True)
def decoder(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    try:
        otlp.classes()
    except processes.Missing as error:
        missing(error)


@pytest.fixture
def forest(stage, rng):
    found = Forest(rng, TREES)
    found.write(stage.directory / "forest.weftr")
    return found


def replay(stage, forest):
    """All of it is there; {uuid of before: the name that the replay gave it}."""
    stage.json("replay", stage.directory / "forest.weftr", "--speed", "max")
    processes.wait_until(lambda: len(stage.json("tasks", "--each")) == len(forest.tops), 10, "the trees", 0.1)
    there = {(row["service"], row["pid"]): row["instance"] for row in stage.json("ls", "--all")}
    return {one.uuid: there[one.service, one.pid] for one in forest.instances}


# ---- the same tree ---------------------------------------------------------


def method_and_path(name, template):
    method, path = name.split(" ")
    found = {"http.request.method": method}
    if method == "PURGE":
        found = {"http.request.method": "_OTHER", "http.request.method_original": method}
    return found | {template if "{" in path else "url.path": path}


def wanted_attributes(span):
    found = dict(span.more)
    if span.hop != "opaque":
        found |= method_and_path(span.name, "http.route" if span.kind == SERVER else "url.template")
    elif span.name != "tcp":
        found["network.protocol.name"] = span.name
    if span.status:
        found["http.response.status_code"] = span.status
    if span.failed:
        found["error.type"] = span.error or str(span.status)
    if span.peer:
        for kind in ("server", "network.peer"):
            found |= {kind + ".address": span.peer[0], kind + ".port": span.peer[1]}
    if span.orphan:
        found["weft.orphan.reason"] = span.orphan
    return found | {"weft.hop": span.hop}


def wanted_resource(span, names):
    owner = span.owner
    found = {"service.name": owner.service, "service.instance.id": names.get(owner.uuid), "process.pid": owner.pid,
             "process.runtime.name": {"node": "nodejs"}.get(owner.vm, owner.vm), "process.runtime.version": owner.version,
             "host.name": owner.host}
    return {key: value for key, value in found.items() if value}


OF_TASKS = re.compile(r"weft\.(kind|complete|hops\..*|orphan\.origin|truncated|hosts|clock|clock_uncertainty_ns)$")
COMPUTED = {"weft.self_ns", "weft.critical", "weft.cpu_ns"}


def same(forest, told, names):
    """Span by span; of what weft computes only that it stands where it belongs."""
    found = otlp.by_id(told)
    assert found.keys() == forest.spans.keys()
    for key, span in forest.spans.items():
        pb, attributes, resource, scope = found[key]
        assert (scope.name, bool(scope.version)) == ("weft", True)
        assert int.from_bytes(pb.parent_span_id, "big") == span.parent and pb.kind == span.kind, span
        assert (pb.name, pb.start_time_unix_nano - WALL, pb.end_time_unix_nano - WALL) == (
            span.name, span.start_ns, span.end_ns), span
        assert pb.status.code == (2 if span.failed else 0), span
        assert resource == wanted_resource(span, names), span
        assert [(int.from_bytes(link.span_id, "big"), otlp.attributes(link.attributes)["weft.link"]) for link in pb.links
                if link.trace_id == span.task] == span.links, span
        tops = {name for name in attributes if OF_TASKS.match(name)}
        assert bool(tops) == (forest.tops[span.task][0] == span.id), (span, tops)
        mine = {name: value for name, value in attributes.items() if name not in tops | COMPUTED}
        assert mine == wanted_attributes(span), span
        assert span.kind == SERVER or not COMPUTED & attributes.keys()
    for task, (top, kind) in forest.tops.items():
        assert found[task, top].attributes["weft.kind"] == kind


def test_otlp_file_is_the_forest(stage, controller, forest):
    names = replay(stage, forest)
    path = stage.directory / "all.otlp"
    done = stage.weft("export", "--format", "otlp", "-o", path, "all")
    assert done.stdout == f"{path}: {TREES} executions\n" and done.stderr == ""
    same(forest, otlp.spans(otlp.decode(path.read_bytes())), names)


def test_one_task_and_those_of_a_name(stage, controller, forest):
    replay(stage, forest)
    task, (top, _) = next(iter(forest.tops.items()))
    path = stage.directory / "one.otlp"
    stage.weft("export", "--format", "otlp", "-o", path, task.hex()[:12])
    found = otlp.by_id(otlp.spans(otlp.decode(path.read_bytes())))
    assert found.keys() == {(task, span.id) for span in forest.by_task()[task]}
    name = forest.spans[task, top].name
    stage.weft("export", "--format", "otlp", "-o", path, "--name", name)
    wanted = {each for each, (its_top, _) in forest.tops.items() if forest.spans[each, its_top].name == name}
    assert {told.span.trace_id for told in otlp.spans(otlp.decode(path.read_bytes()))} == wanted


def test_more_than_a_page(stage, controller, rng):
    """Pages of 2,000, each from the moment at which the one before ended."""
    forest = Forest(rng, 4500, depth=0)
    forest.write(stage.directory / "forest.weftr")
    replay(stage, forest)
    path = stage.directory / "all.otlp"
    stage.weft("export", "--format", "otlp", "-o", path, "all", timeout=60)
    assert otlp.by_id(otlp.spans(otlp.decode(path.read_bytes()))).keys() == forest.spans.keys()
    done = stage.weft("export", "--format", "perfetto", "-o", "-", "--limit", 2001, "all")
    assert "only the newest 2001 executions" in done.stderr and "--limit" in done.stderr
    starts = sorted((forest.spans[task, top].start_ns for task, (top, _) in forest.tops.items()), reverse=True)
    trace = json.loads(done.stdout)
    tasks = {event["args"]["task"] for event in perfetto.slices(trace)}
    assert len(tasks) == 2001 and int(trace["otherData"]["start_ns"]) - WALL == starts[2000]


@pytest.mark.parametrize("ahead_ns", [-7_200_000_000_000, 40_000_000], ids=["hours-behind", "ms-ahead"])
def test_times_of_two_hosts(stage, controller, rng, ahead_ns):
    """They stand on one clock, within what they are said to be off; the other host's own time can be told."""
    forest, task, network_ns = Forest(rng, 0), rng.randbytes(16), 1_000_000
    top, asked, served = forest.add_far_call(task, ahead_ns, network_ns)
    forest.write(stage.directory / "two.weftr")
    stage.json("replay", stage.directory / "two.weftr", "--speed", "max")
    processes.wait_until(lambda: stage.json("tasks", "--each"), 10, "the task", 0.1)
    path = stage.directory / "two.otlp"
    stage.weft("export", "--format", "otlp", "-o", path, "all")
    found = otlp.by_id(otlp.spans(otlp.decode(path.read_bytes())))
    at_top, at_far = found[task, top.id].attributes, found[task, served.id]
    assert (at_top["weft.clock"], at_top["weft.hosts"]) == ("aligned", 2)
    uncertainty, shift = at_top["weft.clock_uncertainty_ns"], at_far.attributes["weft.clock_shift_ns"]
    assert 0 < uncertainty <= asked.end_ns - asked.start_ns, uncertainty
    assert abs(shift + ahead_ns) <= network_ns, "as long one way as the other: the middle is near"
    for span in (top, asked):
        told = found[task, span.id]
        assert told.span.start_time_unix_nano == span.start_ns + WALL and "weft.clock_shift_ns" not in told.attributes
    for told, true in ((at_far.span.start_time_unix_nano, served.start_ns), (at_far.span.end_time_unix_nano, served.end_ns)):
        assert told - shift == true + WALL + ahead_ns and asked.start_ns + WALL <= told <= asked.end_ns + WALL
    stage.weft("export", "--format", "perfetto", "-o", path, "all")
    (told,) = [event["args"] for event in perfetto.slices(perfetto.load(path)) if "clock" in event["args"]]
    assert (told["clock"], told["clock_uncertainty_ns"], told["hosts"]) == ("aligned", uncertainty, 2)


# ---- live ------------------------------------------------------------------


def test_live(stage, forest):
    with otlp.Collector() as collector:
        controller = stage.controller("--otlp", collector.url)
        names = replay(stage, forest)
        processes.wait_until(lambda: len(collector.spans()) >= len(forest.spans), 20, "all spans", 0.1)
        same(forest, collector.spans(), names)
        assert set(collector.paths) == {("/v1/traces", "application/x-protobuf")}
        stats(stage, rf"{len(forest.spans)} sent.* 0 given up")
        assert [line for line in stage.weft("ls").stdout.splitlines() if collector.url in line]
        stage.stop(controller)
    assert (stage.directory / "controller.out").read_text() == ""


def test_the_last_ones_go_out_when_it_ends(stage, forest):
    """Nothing of it is settled yet."""
    with otlp.Collector() as collector:
        controller = stage.controller("--otlp", collector.url + "/somewhere/else")
        names = replay(stage, forest)
        assert stage.stop(controller, 20) == 0
        same(forest, collector.spans(), names)
        assert {path for path, _ in collector.paths} == {"/somewhere/else"}


def test_busy_collector_is_asked_again(stage, forest):
    """After as long as it says; nothing twice, nothing lost."""
    script = [(503, {}), (429, {"Retry-After": "1"}), (502, {}), (504, {})]
    with otlp.Collector(script) as collector:
        stage.controller("--otlp", collector.url)
        names = replay(stage, forest)
        processes.wait_until(lambda: len(collector.spans()) >= len(forest.spans), 30, "all spans", 0.1)
        same(forest, collector.spans(), names)
        assert collector.at[2] - collector.at[1] >= 1, "Retry-After"
        out = stage.directory / "controller.out"
        processes.wait_until(lambda: re.search(r"status (50[234]|429).*nothing is given up", out.read_text()), 15, "a complaint")


def stats(stage, wanted, seconds=20):
    """The line of `weft ls`, once it holds."""
    def look():
        lines = [line for line in stage.weft("ls").stdout.splitlines() if line.startswith("otlp ")]
        return lines and re.search(wanted, lines[0]) and lines[0]
    return processes.wait_until(look, seconds, "otlp line with " + wanted, 0.2)


def test_what_a_collector_refuses_is_given_up_and_said(stage, forest):
    with otlp.Collector([(400, {})] * 100) as collector:
        stage.controller("--otlp", collector.url)
        replay(stage, forest)
        stats(stage, rf"0 sent.* {len(forest.spans)} given up.*status 400")
        out = (stage.directory / "controller.out").read_text().splitlines()
        assert len(out) >= 1 and all(re.search(r"otlp http.*given up: .*status 400; .*weft export", line) for line in out), out


def test_what_a_collector_takes_in_part_is_counted(stage, forest):
    answer = otlp.classes()[1]()
    answer.partial_success.rejected_spans = 7
    answer.partial_success.error_message = "too old"
    with otlp.Collector([answer]) as collector:
        stage.controller("--otlp", collector.url)
        replay(stage, forest)
        stats(stage, rf"{len(forest.spans) - 7} sent.* 7 rejected.*too old")
        done = stage.weft("export", "--format", "otlp", "--to", collector.url, "all")
        assert done.stdout == f"{collector.url}/v1/traces: {TREES} executions\n"
        collector.script.append(answer)
        one_line_of = stage.weft("export", "--format", "otlp", "--to", collector.url, "all", check=False)
        assert one_line_of.returncode == 1 and "would not take 7" in one_line_of.stderr and "too old" in one_line_of.stderr


def test_a_slow_collector_gets_all_in_its_own_time(stage, forest):
    """A second for each message: what comes meanwhile waits, is shown as waiting, and holds nobody up."""
    with otlp.Collector([1.0] * 50) as collector:
        stage.controller("--otlp", collector.url)
        names = replay(stage, forest)
        stats(stage, r"[1-9]\d* waiting")
        again = Forest(stage.rng, 200)
        again.write(stage.directory / "again.weftr")
        stage.json("replay", stage.directory / "again.weftr", "--speed", "max", timeout=10)
        wanted = len(forest.spans) + len(again.spans)
        stats(stage, rf" {wanted} sent, 0 rejected, 0 given up, 0 waiting$", 60)
        found = [told for told in collector.spans() if told.span.trace_id in forest.tops]
        same(forest, found, names)
        gaps = [b - a for a, b in zip(collector.at, collector.at[1:])]
        assert all(gap >= 0.9 for gap in gaps), gaps
        assert (stage.directory / "controller.out").read_text() == ""


@pytest.mark.parametrize("dead", ["refuses", "silent"])
def test_a_dead_collector_holds_nobody_up(stage, forest, dead):
    """Answers come as fast as ever, everything is stored, and the end waits for three seconds at most."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        if dead == "silent":
            silent.listen(1)
        controller = stage.controller("--otlp", "http://127.0.0.1:%d" % silent.getsockname()[1])
        replay(stage, forest)
        stats(stage, r"0 sent.*[1-9]\d* waiting", 10)
        began = time.monotonic()
        for _ in range(5):
            stage.weft("tasks")
        assert time.monotonic() - began < 5
        began = time.monotonic()
        assert stage.stop(controller, 20) == 0
        assert time.monotonic() - began < 8
        out = (stage.directory / "controller.out").read_text()
        assert f"{len(forest.spans)} spans given up" in out, out
    stage.controller()
    path = stage.directory / "all.otlp"
    stage.weft("export", "--format", "otlp", "-o", path, "all")
    assert otlp.by_id(otlp.spans(otlp.decode(path.read_bytes()))).keys() == forest.spans.keys()


def test_a_collector_that_comes_late_gets_all(stage, forest):
    port = processes.free_port(stage.rng)
    stage.controller("--otlp", "http://127.0.0.1:%d" % port)
    names = replay(stage, forest)
    processes.wait_until(lambda: "trying again" in (stage.directory / "controller.out").read_text(), 15, "a complaint")
    with otlp.Collector(port=port) as collector:
        processes.wait_until(lambda: len(collector.spans()) >= len(forest.spans), 30, "all spans", 0.1)
        same(forest, collector.spans(), names)
        processes.wait_until(lambda: "works again" in (stage.directory / "controller.out").read_text(), 15, "relief")


def test_real_services(stage):
    """Two processes: who they are, and the ids that their own logs have of the requests."""
    with otlp.Collector() as collector:
        stage.controller("--otlp", collector.url)
        back = stage.app("http", "back", run=True)
        front = stage.app("http", "front", peers={"back": back.url}, run=True)
        rows = {row["service"]: row for row in stage.wait_instances(2)}
        instruct(stage, "--embed", "*", "--capture", "*")
        instruct(stage, "--root", "service=front")
        send(front, path_through("front", "back"))
        told = processes.wait_until(lambda: len(collector.spans()) >= 3 and collector.spans(), 20, "three spans", 0.1)
        at, asked, served = sorted(told, key=lambda one: one.span.start_time_unix_nano)
        assert (at.span.kind, asked.span.kind, served.span.kind) == (SERVER, CLIENT, SERVER)
        assert not at.span.parent_span_id and asked.span.parent_span_id == at.span.span_id
        assert served.span.parent_span_id == asked.span.span_id and at.attributes["weft.complete"] is True
        (line,) = map(json.loads, back.log.read_text().splitlines())
        wanted = [each.span.trace_id.hex() for each in told] == [line["traceparent"].split("-")[1]] * 3
        assert wanted and line["traceparent"].split("-")[2] == asked.span.span_id.hex(), line
        for each, app in ((at, front), (asked, front), (served, back)):
            row = rows[app.name]
            assert each.resource == {
                "service.name": app.name, "process.pid": app.pid, "host.name": socket.gethostname(), "process.runtime.name": "cpython",
                "process.runtime.version": row["version"], "service.instance.id": row["instance"]}
            assert each.attributes["http.response.status_code"] == 200 and each.attributes["http.request.method"] == "GET"


# ---- Perfetto --------------------------------------------------------------


def test_perfetto_is_the_forest(stage, controller, forest):
    replay(stage, forest)
    path = stage.directory / "all.json"
    done = stage.weft("export", "--format", "perfetto", "-o", path, "all")
    assert done.stdout == f"{path}: {TREES} executions\n" and done.stderr == ""
    trace = perfetto.load(path)
    zero = int(trace["otherData"]["start_ns"])
    process = {event["pid"]: event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"}
    found = {(bytes.fromhex(event["args"]["task"]), int(event["args"]["span"], 16)): event for event in perfetto.slices(trace)}
    assert found.keys() == forest.spans.keys() and len(found) == len(perfetto.slices(trace))
    for key, span in forest.spans.items():
        event = found[key]
        assert (event["name"], process[event["pid"]]) == (span.name, span.owner.service), span
        assert (int(event["ts"] * 1000) + zero, int(event["dur"] * 1000)) == (
            span.start_ns + WALL, span.end_ns - span.start_ns), span
        assert int(event["args"].get("parent", "0"), 16) == span.parent
        assert event["cat"] == ("subtask" if span.kind == SERVER else "opaque" if span.hop == "opaque" else "request")
    proven = [span for span in forest.spans.values() if span.kind == SERVER and span.hop == "proven"]
    assert len(perfetto.arrows(trace)) == len(proven)


def test_fields_of_a_vendor(stage, controller, forest):
    replay(stage, forest)
    with otlp.Collector() as collector:
        for given, wanted in (("api-key=s3cret, x-scope=a%2Cb%3D", {"api-key": "s3cret", "x-scope": "a,b="}), ("", {})):
            stage.weft("export", "--format", "otlp", "--to", collector.url, "all", env={FIELDS: given})
            assert {name: value for name, value in collector.fields.items() if name in ("api-key", "x-scope")} == wanted
    for bad in "api-key", "a=b%0d%0aevil: 1", "a b=c":
        done = stage.weft("export", "--format", "otlp", "--to", "http://127.0.0.1:1", "all", env={FIELDS: bad}, check=False)
        one_line(done, FIELDS, "api-key=secret", codes=(2,))


# ---- bad input -------------------------------------------------------------


def test_packed(stage, controller, forest):
    """The same spans in fewer bytes where the environment says gzip, and as they are where it says nothing."""
    names, sizes = replay(stage, forest), {}
    for packing in ("gzip", "none"):
        with otlp.Collector() as collector:
            stage.weft("export", "--format", "otlp", "--to", collector.url, "all", env={PACKING: packing})
            same(forest, collector.spans(), names)
            assert collector.fields.get("Content-Encoding") == {"gzip": "gzip"}.get(packing)
            sizes[packing] = collector.received
    assert sizes["gzip"] * 3 < sizes["none"], sizes
    one_line(stage.weft("export", "--format", "otlp", "--to", "http://127.0.0.1:4318", "all", check=False, env={PACKING: "zstd"}),
             PACKING, "'zstd'", "gzip or none")


def test_bad_url(stage):
    for url in "", "127.0.0.1:4318", "ftp://127.0.0.1/", "http://", "http://127.0.0.1:99999", "localhost":
        for verb in ["export", "--format", "otlp", "all", "--to"], ["controller", "--otlp"]:
            one_line(stage.weft(*verb, url, check=False), "URL '%s' for %s" % (re.escape(url), verb[-1]), "http://")


WRONG = [
    (["all"], ["--format", "otlp or perfetto"]),
    (["--format", "zipkin", "-o", "x", "all"], ["zipkin", "otlp and perfetto"]),
    (["--format", "otlp", "all"], ["--to URL", "-o FILE"]),
    (["--format", "perfetto", "all"], ["-o FILE"]),
    (["--format", "perfetto", "--to", "http://127.0.0.1:1", "all"], ["--to", "-o FILE"]),
    (["--format", "otlp", "--to", "http://127.0.0.1:1", "-o", "x", "all"], ["exclude"]),
    (["--format", "otlp", "-o", "x"], ["TASK, --name, --since or all"]),
    (["--format", "otlp", "-o", "x", "--name", "GET /", "0123"], ["excludes"]),
    (["--format", "otlp", "-o", "x", "--limit", "0", "all"], ["--limit"]),
    (["--format", "otlp", "-o", "x", "--last", "10", "all"], ["--last", "unit"])]


def test_wrong_usage(stage):
    for arguments, needed in WRONG:
        one_line(stage.weft("export", *arguments, check=False), *needed, codes=(2,))


@pytest.mark.parametrize("kind", ["otlp", "perfetto"])
def test_no_such_task(stage, controller, kind):
    path = stage.directory / "out"
    for which in (["0123abcd"], ["--name", "GET /nothing"], ["all"]):
        one_line(stage.weft("export", "--format", kind, "-o", path, *which, check=False), "no (such )?(task|execution)")
        assert not list(stage.directory.glob("out*")), "nothing is left behind"
    assert "hexadecimal" in stage.weft("export", "--format", kind, "-o", path, "xyz", check=False).stderr


@pytest.mark.parametrize("kind", ["otlp", "perfetto"])
def test_file_that_cannot_be_written(stage, controller, forest, kind):
    replay(stage, forest)
    for path, why in ((stage.directory / "no" / "where", "No such file"), (stage.directory, "directory"),
                      ("/dev/full", "No space left"), ("", "empty")):
        one_line(stage.weft("export", "--format", kind, "-o", path, "all", check=False), why, "-o|--help")
    before = stage.directory / "before"
    before.write_text("as it was")
    one_line(stage.weft("export", "--format", kind, "-o", before, "0123abcd", check=False), "no task")
    assert before.read_text() == "as it was"


def test_collector_that_is_not_there(stage, controller, forest):
    replay(stage, forest)
    url = "http://127.0.0.1:%d" % processes.free_port(stage.rng)
    one_line(stage.weft("export", "--format", "otlp", "--to", url, "all", check=False), re.escape(url), "refused|connect", "listens")
    with otlp.Collector([(404, {})]) as collector:
        one_line(stage.weft("export", "--format", "otlp", "--to", collector.url + "/v2", "all", check=False), "status 404", "/v2")


# ---- Jaeger ----------------------------------------------------------------


def wait_traces(server, forest):
    """{task: trace}, once all spans are there."""
    def look():
        found = {task: server.trace(task) for task in forest.tops}
        return all(found.values()) and sum(len(each["spans"]) for each in found.values()) >= len(forest.spans) and found
    return processes.wait_until(look, 30, "the traces in Jaeger", 0.5)


def same_in_jaeger(forest, traces):
    """Ids, parents, links, names, kinds, services, times and durations (it keeps microseconds), errors."""
    for task, spans in forest.by_task().items():
        trace = traces[task]
        found = {int(span["spanID"], 16): span for span in trace["spans"]}
        assert len(found) == len(trace["spans"]) and found.keys() == {span.id for span in spans}
        for span in spans:
            seen = found[span.id]
            tags = {tag["key"]: tag["value"] for tag in seen["tags"]}
            parents = [int(r["spanID"], 16) for r in seen["references"] if r["refType"] == "CHILD_OF" and r["traceID"] == task.hex()]
            assert parents == [span.parent] * bool(span.parent), span
            linked = {int(r["spanID"], 16) for r in seen["references"] if r["refType"] == "FOLLOWS_FROM"}
            assert linked == {other for other, _ in span.links}, span
            assert tags["otel.scope.name"] == "weft" and tags["weft.hop"] == span.hop, span
            assert bool(tags.get("otel.status_description")) == (span.failed and bool(span.error)), span
            assert seen["operationName"] == span.name and tags["span.kind"] == {SERVER: "server", CLIENT: "client"}[span.kind]
            assert seen["startTime"] == (span.start_ns + WALL) // 1000, span
            assert seen["duration"] == (span.end_ns - span.start_ns) // 1000, span
            assert trace["processes"][seen["processID"]]["serviceName"] == span.owner.service
            assert tags.get("error", False) == span.failed and tags.get("http.response.status_code") == span.status, span


def jaeger_has_the_same_tree(stage, forest):
    try:
        server = jaeger.Jaeger(stage)
    except processes.Missing as error:
        missing(error)
    controller = stage.controller("--otlp", server.url)
    replay(stage, forest)
    same_in_jaeger(forest, wait_traces(server, forest))
    assert set(server.get("services")) >= {instance.service for instance in forest.instances}
    stage.stop(controller)
    assert (stage.directory / "controller.out").read_text() == ""
    server.process.kill()


if jaeger.state() == 0:  # scripts/jaeger has built it; elsewhere the collector above stands for it
    test_jaeger_has_the_same_tree = jaeger_has_the_same_tree

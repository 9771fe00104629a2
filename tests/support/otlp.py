# SPDX-License-Identifier: Apache-2.0
"""An OTLP/HTTP collector of the tests: decodes with OpenTelemetry's own protobuf classes (PyPI
opentelemetry-proto, below build/), which share nothing with weft's encoder."""
import collections
import gzip
import http.server
import sys
import threading
import time

import processes

PACKAGES = processes.ROOT / "build" / "otlp-py"  # scripts/install-packages check


def classes():
    """(Request, Response) of the trace service; Missing where the package is not there."""
    if str(PACKAGES) not in sys.path:
        sys.path.insert(0, str(PACKAGES))
    try:
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
    except ImportError as error:
        raise processes.Missing("opentelemetry-proto (scripts/install-packages check): %s" % error) from None
    return trace_service_pb2.ExportTraceServiceRequest, trace_service_pb2.ExportTraceServiceResponse


def decode(data):
    """The request; nothing in it may be unknown to the published messages."""
    request = classes()[0]()
    request.ParseFromString(data)
    assert request.SerializeToString(deterministic=True) and not unknown_fields(request)
    return request


def unknown_fields(message):
    from google.protobuf.unknown_fields import UnknownFieldSet
    found = [field.field_number for field in UnknownFieldSet(message)]
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for each in value if field.is_repeated else [value]:
                found += unknown_fields(each)
    return found


def attributes(pairs):
    found = {}
    for pair in pairs:
        assert pair.key not in found, "%s stands there twice" % pair.key
        found[pair.key] = getattr(pair.value, pair.value.WhichOneof("value"))
    return found


Told = collections.namedtuple("Told", "span attributes resource scope")


def spans(request):
    """Every span with its attributes and those of its resource."""
    return [Told(span, attributes(span.attributes), attributes(resource.resource.attributes), scoped.scope)
            for resource in request.resource_spans for scoped in resource.scope_spans for span in scoped.spans]


class Collector:
    """Listens; answers what `script` has for each message in turn, then 200.

    A script entry is (status, headers), a number of seconds to say nothing before 200, or a
    Response to answer with."""

    def __init__(self, script=(), port=0):
        self.script, self.requests, self.paths = list(script), [], []
        self.fields = {}  # of the last message
        self.at = []  # when each message came
        self.received = 0  # bytes of bodies
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                data = self.rfile.read(int(self.headers["Content-Length"]))
                outer.received += len(data)
                if self.headers["Content-Encoding"] == "gzip":
                    data = gzip.decompress(data)
                outer.answer(self, data)

            def log_message(self, *unused):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.lock = threading.Lock()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.server.server_port

    def answer(self, handler, data):
        with self.lock:
            self.at.append(time.monotonic())
            self.paths.append((handler.path, handler.headers["Content-Type"]))
            self.fields = dict(handler.headers.items())
            entry = self.script.pop(0) if self.script else None
        body, status, headers = b"", 200, {}
        if isinstance(entry, tuple):
            status, headers = entry
        elif isinstance(entry, (int, float)):
            time.sleep(entry)
        elif entry is not None:
            body = entry.SerializeToString()
        if status == 200:
            request = decode(data)
            with self.lock:
                self.requests.append(request)
        handler.send_response(status)
        for name, value in {"Content-Type": "application/x-protobuf", "Content-Length": len(body), **headers}.items():
            handler.send_header(name, str(value))
        handler.end_headers()
        handler.wfile.write(body)

    def spans(self):
        with self.lock:
            return [told for request in self.requests for told in spans(request)]


def by_id(told):
    """{(task, id): Told}, each span once."""
    found = {}
    for each in told:
        key = each.span.trace_id, int.from_bytes(each.span.span_id, "big")
        assert key not in found, "span %016x is there twice" % key[1]
        found[key] = each
    return found



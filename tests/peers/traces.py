#!/usr/bin/env python3
"""traces.py: a client with OpenTelemetry's SDK, two relays, an agent, and a collector of their spans.

    traced.py → acp-relay connect ⇄ acp-relay serve → an agent of the Python SDK

The client and the agent are the official Python SDK; the client's spans and its `traceparent` are
made by OpenTelemetry's Python SDK, and the collector decodes spans with OpenTelemetry's own
definitions of OTLP. Only the checks are ours: every span has the right parent.
"""
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from paths import PEERS, RELAY

HERE = Path(__file__).resolve().parent
PYTHON = PEERS / "traces/bin/python"
if Path(sys.prefix).resolve() != (PEERS / "traces").resolve():
    if not PYTHON.exists():
        sys.exit("traces.py: run tests/peers/install.sh first")
    os.execv(PYTHON, [PYTHON, __file__, *sys.argv[1:]])

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (  # noqa: E402
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


class Collector(BaseHTTPRequestHandler):
    spans = []
    lock = threading.Lock()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = ExportTraceServiceRequest.FromString(body)
        with self.lock:
            for resource in request.resource_spans:
                named = {one.key: one.value.string_value for one in resource.resource.attributes}
                for scope in resource.scope_spans:
                    self.spans += [(named["service.name"], span) for span in scope.spans]
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as home:
        environment = {
            **os.environ,
            "HOME": home,
            "ACP_RELAY_STATE_DIR": home,
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:%d" % server.server_port,
            "OTEL_BSP_SCHEDULE_DELAY": "50",
            "SEEN": str(Path(home) / "seen"),
        }
        serve = subprocess.Popen(
            [RELAY, "serve", "--listen", "ws://127.0.0.1:0", "--", str(PYTHON), str(HERE / "traced.py"), "agent"],
            env={**environment, "OTEL_SERVICE_NAME": "far"}, stderr=subprocess.PIPE, text=True)
        try:
            line = serve.stderr.readline()
            url = line.rsplit(" ", 1)[-1].strip()
            assert url.startswith("ws://"), line
            threading.Thread(target=serve.stderr.read, daemon=True).start()
            subprocess.run([str(PYTHON), str(HERE / "traced.py"), "client", RELAY, url],
                           env={**environment, "OTEL_SERVICE_NAME": "editor"}, check=True, timeout=60)
            serve.terminate()
            assert serve.wait(30) == 0
        finally:
            if serve.poll() is None:
                serve.kill()
        seen = Path(environment["SEEN"]).read_text().split()
    judge(Collector.spans, seen)


def judge(spans, seen):
    def one(service, name, at=0):
        found = [span for owner, span in spans if owner == service and span.name == name]
        found.sort(key=lambda span: span.start_time_unix_nano)
        assert len(found) > at, "%s has no span %d called %s: %s" % (
            service, at, name, sorted({(owner, span.name) for owner, span in spans}))
        return found[at]

    def check_parent(child, parent):
        assert child.trace_id == parent.trace_id, "%s is in another trace than %s" % (child.name, parent.name)
        assert child.parent_span_id == parent.span_id, "%s is not a child of %s" % (child.name, parent.name)

    editor = one("editor", "a turn of the editor")
    near, far = [one(service, "session/prompt") for service in ("near", "far")]
    check_parent(near, editor)
    check_parent(far, editor)
    for turn, service in ((near, "near"), (far, "far")):
        linked = turn.links[0]
        assert linked.span_id == one(service, "session").span_id
    # The second turn has no trace context, and `connect` inserts one.
    near, far = [one(service, "session/prompt", 1) for service in ("near", "far")]
    check_parent(near, one("near", "session"))
    check_parent(far, near)
    for service in ("near", "far"):
        check_parent(one(service, "session"), one(service, "connection"))
        assert not one(service, "connection").parent_span_id
    expected = ["00-%s-%s-01" % (span.trace_id.hex(), span.span_id.hex()) for span in (editor, near)]
    # Flags after the first do not matter.
    assert [one[:53] for one in seen] == [span[:53] for span in expected], "the agent received %s instead of %s" % (seen, expected)
    text = str(spans)
    assert "the editor's own words" not in text, "a message body in a trace"
    print("traces: %d spans of %d programs are connected" % (len(spans), len({owner for owner, _ in spans})))


if __name__ == "__main__":
    main()

"""Spans reach a collector of OpenTelemetry, by its own SDK; and without one nothing of it is loaded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import sys
from handrail.agent.agent_factory import open_agent
from handrail.model_tools import reset
from handrail.testing import ModelReply, ScriptedModel, call
model = ScriptedModel([
    ModelReply("", [call("read_file", path="/secret-path"), call("delegate_task", goal="look")]),
    ModelReply("child"), ModelReply("an answer")])
with open_agent(models=[model]) as agent:
    agent.run("a question")
reset()
print(sum(name.startswith("opentelemetry") for name in sys.modules))
"""


class Collector:
    """Takes spans over HTTP, as OTLP has it."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                collector.bodies.append(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                """Tests print nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)

    def spans(self) -> dict[str, dict[str, Any]]:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        found = {}
        for body in self.bodies:
            request = ExportTraceServiceRequest()
            request.ParseFromString(body)
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        values = {each.key: each.value for each in span.attributes}
                        found[span.name] = {"span": span, "values": values, "text": str(span)}
        return found


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    thread = threading.Thread(target=collector.server.serve_forever, args=(0.05,))
    thread.start()
    yield collector
    collector.server.shutdown()
    collector.server.server_close()
    thread.join()


def run(home: Path, **env: str) -> str:
    own = {"HANDRAIL_HOME": str(home), "PATH": os.environ["PATH"], **env}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=own, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_nothing_is_loaded_when_nobody_listens(home: Path) -> None:
    assert run(home) == "0"


def test_turns_model_calls_and_tools_are_spans_without_what_was_said(home: Path, collector: Collector) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="pip install 'handrail[otel]'")
    where = f"http://127.0.0.1:{collector.server.server_address[1]}"
    run(home, HANDRAIL_TELEMETRY_ENABLED="true", OTEL_EXPORTER_OTLP_ENDPOINT=where)
    spans = collector.spans()
    assert {
        "invoke_agent handrail",
        "chat ScriptedModel",
        "execute_tool read_file",
        "execute_tool delegate_task",
    } <= set(spans)
    turn, child = spans["invoke_agent handrail"]["span"], spans["invoke_agent look"]["span"]
    assert spans["execute_tool read_file"]["span"].parent_span_id == turn.span_id
    assert child.trace_id == turn.trace_id
    values = spans["execute_tool read_file"]["values"]
    assert values["gen_ai.tool.name"].string_value == "read_file"
    assert values["error.type"].string_value
    everything = json.dumps([each["text"] for each in spans.values()])
    for said in ("a question", "an answer", "/secret-path"):
        assert said not in everything


def test_what_was_said_is_in_them_when_that_is_wanted(home: Path, collector: Collector) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="pip install 'handrail[otel]'")
    where = f"http://127.0.0.1:{collector.server.server_address[1]}"
    run(home, HANDRAIL_TELEMETRY_ENABLED="true", HANDRAIL_TELEMETRY_CONTENT="true", OTEL_EXPORTER_OTLP_ENDPOINT=where)
    everything = json.dumps([each["text"] for each in collector.spans().values()])
    for said in ("a question", "an answer", "/secret-path"):
        assert said in everything

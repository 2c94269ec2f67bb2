"""OpenTelemetry spans for turns, model calls and tools. All names of its GenAI conventions that we use are in this module. A
program that has set OpenTelemetry up gets the spans; in any other nothing of it is loaded. The content of messages is included
only on request."""

import contextlib
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import HandrailError

_SCOPE = "handrail"
OPERATION = "gen_ai.operation.name"
INVOKE_AGENT, CHAT, EXECUTE_TOOL = "invoke_agent", "chat", "execute_tool"
AGENT_NAME = "gen_ai.agent.name"
CONVERSATION = "gen_ai.conversation.id"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHED_TOKENS = "gen_ai.usage.cache_read.input_tokens"
TOOL_NAME = "gen_ai.tool.name"
TOOL_CALL_ID = "gen_ai.tool.call.id"
TOOL_TYPE = "gen_ai.tool.type"
ERROR_TYPE = "error.type"
# Content: only on request.
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"
CONTENT = frozenset({INPUT_MESSAGES, OUTPUT_MESSAGES, TOOL_ARGUMENTS, TOOL_RESULT})


class Span:
    """A span, or a no-op when nobody listens."""

    __slots__ = ("_content", "_span")

    def __init__(self, span: Any = None, *, content: bool = False) -> None:
        self._span, self._content = span, content

    def end(self, attributes: Mapping[str, Any] | None = None, *, error: str = "") -> None:
        """`error` is the type of the error, not its text, which may contain content."""
        if self._span is None:
            return
        for name, value in (attributes or {}).items():
            if name not in CONTENT:
                self._span.set_attribute(name, value)
            elif self._content:
                self._span.set_attribute(name, value if isinstance(value, str) else json.dumps(value, default=str))
        if error:
            from opentelemetry.trace import StatusCode

            self._span.set_attribute(ERROR_TYPE, error)
            self._span.set_status(StatusCode.ERROR)
        self._span.end()


class Telemetry:
    """Makes spans. `content`: include messages, arguments and results."""

    def __init__(self, *, content: bool = False) -> None:
        self._content = content

    def turn(self, session: str, *, agent: str) -> contextlib.AbstractContextManager[object]:
        """One turn; its calls are child spans, also those of child agents."""
        attributes = {OPERATION: INVOKE_AGENT, AGENT_NAME: agent, CONVERSATION: session}
        tracer, name = _tracer(), f"{INVOKE_AGENT} {agent}"
        return contextlib.nullcontext() if tracer is None else tracer.start_as_current_span(name, attributes=attributes)

    def model(self, model: str, provider: str, session: str) -> Span:
        attributes = {OPERATION: CHAT, REQUEST_MODEL: model, PROVIDER: provider, CONVERSATION: session}
        return self._start(f"{CHAT} {model}", attributes, kind="CLIENT")

    def tool(self, name: str, call_id: str) -> Span:
        attributes = {OPERATION: EXECUTE_TOOL, TOOL_NAME: name, TOOL_CALL_ID: call_id, TOOL_TYPE: "function"}
        return self._start(f"{EXECUTE_TOOL} {name}", attributes, kind="INTERNAL")

    def _start(self, name: str, attributes: Mapping[str, str], *, kind: str) -> Span:
        if (tracer := _tracer()) is None:
            return Span()
        from opentelemetry.trace import SpanKind

        return Span(tracer.start_span(name, attributes=attributes, kind=SpanKind[kind]), content=self._content)


def start_exporting() -> Callable[[], object]:
    """Export spans as the OTEL_* variables say, unless the program does so already. Returns a function that flushes them."""
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise HandrailError("telemetry needs OpenTelemetry; pip install 'handrail[otel]'") from None
    if isinstance(trace.get_tracer_provider(), TracerProvider):
        return lambda: None
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider.force_flush


def _tracer() -> Any:
    """None when OpenTelemetry is not loaded: then nobody listens."""
    api = sys.modules.get("opentelemetry.trace")
    return None if api is None else api.get_tracer(_SCOPE)

"""A server that speaks OpenAI's chat completions and responses and Anthropic's messages, by a script, and fails on demand.

    with ModelServer([ModelReply("hello"), Fault(429), ModelReply("again")]) as server:
        model = OpenAIChat("scripted", base_url=server.base_url)

For tests of anything that asks a model over HTTP. It listens on loopback only.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ..protocols import ModelReply
from ..types import JsonDict
from .fakes import Reply


@dataclass(frozen=True, slots=True)
class Fault:
    """What the server does instead of answering. `status` 200 with `cut_after` ends the stream after so many events without its
    end; `garbage` sends what is no JSON; `hang` seconds pass before anything is sent; `endless` sends the text again and again
    until the client goes away."""

    status: int = 200
    message: str = "it was told to fail"
    headers: dict[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    garbage: bool = False
    hang: float = 0.0
    endless: str = ""


@dataclass(frozen=True, slots=True)
class Raw:
    """An answer as a server of somebody else may send it: OpenAI's `delta`s, each in an event of its own."""

    deltas: Sequence[JsonDict]
    finish: str | None = "stop"


Step = Reply | Fault | Raw
_STRANGER = Fault(401, "the key is not valid")


class ModelServer:
    """Answers in the script's order, whatever is asked. `requests` has the bodies that came, `keys` the keys."""

    def __init__(self, script: Iterable[Step] = (), *, models: Iterable[str] = ("scripted",), key: str = "") -> None:
        self.requests: list[JsonDict] = []
        self.keys: list[str] = []
        self._script = list(script)
        self._models, self._key = list(models), key
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.owner = self  # type: ignore[attr-defined]
        self._server.daemon_threads = True
        serve = self._server.serve_forever
        self._thread = threading.Thread(target=serve, args=(0.05,), name="model-server", daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def say(self, *replies: Step) -> None:
        """Add to the script."""
        with self._lock:
            self._script += replies

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _next(self, request: JsonDict, key: str) -> ModelReply | Fault | Raw:
        with self._lock:
            self.requests.append(request)
            self.keys.append(key)
            if not self._lets_in(key):
                return _STRANGER
            if not self._script:
                return Fault(400, "the script is over")
            step = self._script.pop(0)
        said = request.get("messages") or request.get("input", [])
        return step(said, request.get("tools", [])) if callable(step) else step

    def _lets_in(self, key: str) -> bool:
        return not self._key or key == self._key


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def _owner(self) -> ModelServer:
        return self.server.owner  # type: ignore[attr-defined, no-any-return]

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  as the base class has it
        """Tests print nothing."""

    def do_GET(self) -> None:
        if not self._owner._lets_in(self._key_sent()):
            self._fail(_STRANGER)
            return
        listed = [{"id": name, "object": "model", "created": 0, "owned_by": "tests"} for name in self._owner._models]
        self._json(200, {"object": "list", "data": listed})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        step = self._owner._next(body, self._key_sent())
        try:
            if isinstance(step, Fault):
                self._fail(step)
            elif isinstance(step, Raw):
                self._stream(raw_events(step.deltas, step.finish))
            elif self.path.endswith("/messages"):
                self._stream(anthropic_events(step))
            elif self.path.endswith("/responses"):
                self._json(200, response(step))
            elif body.get("stream"):
                self._stream(events(step))
            else:
                self._json(200, whole(step))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client has gone away

    def _key_sent(self) -> str:
        return str(self.headers.get("x-api-key") or self.headers.get("authorization", "").removeprefix("Bearer "))

    def _fail(self, fault: Fault) -> None:
        if fault.hang:
            self._owner._stopped.wait(fault.hang)
        if fault.status != 200:
            self._json(fault.status, {"error": {"message": fault.message}}, fault.headers)
        elif fault.garbage:
            self._stream(iter(["{not json"]))
        elif fault.endless:
            self._stream(iter(lambda: chunk({"content": fault.endless}), None))
        else:
            self._stream(events(ModelReply("this answer is cut")), cut_after=fault.cut_after)

    def _json(self, status: int, value: JsonDict, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        sent = {"content-type": "application/json", "content-length": str(len(data)), **(headers or {})}
        for name, text in sent.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Iterator[str], *, cut_after: int | None = None) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for number, event in enumerate(events):
            if number == cut_after or self._owner._stopped.is_set():
                return
            self.wfile.write(f"{named(event)}data: {event}\n\n".encode())
            self.wfile.flush()


_PIECE_CHARS = 7
_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def events(reply: ModelReply) -> Iterator[str]:
    deltas: list[JsonDict] = [{"content": piece} for piece in _pieces(reply.content)]
    for index, call in enumerate(reply.tool_calls):
        function = call["function"]
        begin = {"index": index, "id": call["id"], "type": "function"}
        deltas.append({"tool_calls": [{**begin, "function": {"name": function["name"], "arguments": ""}}]})
        deltas.append({"tool_calls": [{"index": index, "function": {"arguments": function["arguments"]}}]})
    return raw_events(deltas, "tool_calls" if reply.tool_calls else "stop")


def raw_events(deltas: Sequence[JsonDict], finish: str | None) -> Iterator[str]:
    for delta in deltas:
        yield chunk(delta)
    if finish is not None:
        yield chunk({}, finish=finish)
    yield json.dumps({**_frame("chat.completion.chunk"), "choices": [], "usage": _USAGE})
    yield "[DONE]"


def chunk(delta: JsonDict, *, finish: str | None = None) -> str:
    choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": finish}
    return json.dumps({**_frame("chat.completion.chunk"), "choices": [choice]})


def whole(reply: ModelReply) -> JsonDict:
    message: JsonDict = {"role": "assistant", "content": reply.content}
    if reply.tool_calls:
        message["tool_calls"] = [dict(call) for call in reply.tool_calls]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if reply.tool_calls else "stop"}
    return {**_frame("chat.completion"), "choices": [choice], "usage": _USAGE}


def response(reply: ModelReply) -> JsonDict:
    """As the Responses API answers, whole."""
    said = {"type": "output_text", "text": reply.content, "annotations": []}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [said]}
    kind = {"type": "function_call", "status": "completed"}
    calls = [{**kind, "id": f"fc_{call['id']}", "call_id": call["id"], **call["function"]} for call in reply.tool_calls]
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15, **details}
    fixed = {"created_at": 0, "status": "completed", "tools": [], "tool_choice": "auto", "parallel_tool_calls": True}
    return {**_frame("response"), **fixed, "output": [*([message] if reply.content else []), *calls], "usage": usage}


def anthropic_events(reply: ModelReply) -> Iterator[str]:
    usage = {"input_tokens": 10, "output_tokens": 0, "cache_read_input_tokens": 4}
    head = {"id": "scripted", "model": "scripted", "type": "message", "role": "assistant", "content": []}
    yield json.dumps({"type": "message_start", "message": {**head, "usage": usage}})
    texts = [{"type": "text_delta", "text": piece} for piece in _pieces(reply.content)]
    blocks: list[tuple[JsonDict, list[JsonDict]]] = [({"type": "text", "text": ""}, texts)] if texts else []
    for call in reply.tool_calls:
        block = {"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": {}}
        blocks.append((block, [{"type": "input_json_delta", "partial_json": call["function"]["arguments"]}]))
    for index, (block, deltas) in enumerate(blocks):
        yield json.dumps({"type": "content_block_start", "index": index, "content_block": block})
        for delta in deltas:
            yield json.dumps({"type": "content_block_delta", "index": index, "delta": delta})
        yield json.dumps({"type": "content_block_stop", "index": index})
    reason = "tool_use" if reply.tool_calls else "end_turn"
    yield json.dumps({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}})
    yield json.dumps({"type": "message_stop"})


def named(event: str) -> str:
    """Anthropic's events have a name of their own in front."""
    kind = json.loads(event).get("type", "") if event.startswith('{"type": "') else ""
    return f"event: {kind}\n" if kind else ""


def _pieces(text: str) -> Iterator[str]:
    return (text[start : start + _PIECE_CHARS] for start in range(0, len(text), _PIECE_CHARS))


def _frame(kind: str) -> JsonDict:
    return {"id": "scripted", "object": kind, "created": int(time.time()), "model": "scripted"}

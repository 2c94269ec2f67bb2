"""A server that speaks OpenAI's chat completions and says what it was told to say, with faults on demand.

    with ModelServer([ModelReply("hello"), Fault(429), ModelReply("again")]) as server:
        model = OpenAIChat("scripted", base_url=server.base_url)

For tests of anything that asks a model over HTTP. It listens on loopback only.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from ..protocols import ModelReply
from ..types import JsonDict
from .model import Reply

_PIECE_CHARS = 7


@dataclass(frozen=True, slots=True)
class Fault:
    """What the server does instead of answering.

    `status` 200 with `cut_after` ends the stream after so many events without its end; `garbage` sends what is no JSON;
    `hang` seconds pass before anything is sent.
    """

    status: int = 200
    message: str = "it was told to fail"
    headers: dict[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    garbage: bool = False
    hang: float = 0.0


class ModelServer:
    """Answers in the script's order, whatever is asked. `requests` has the bodies that came, `keys` the keys."""

    def __init__(
        self, script: Iterable[Reply | Fault] = (), *, models: Iterable[str] = ("scripted",), key: str = ""
    ) -> None:
        self.requests: list[JsonDict] = []
        self.keys: list[str] = []
        self._script = list(script)
        self._models, self._key = list(models), key
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.owner = self  # type: ignore[attr-defined]
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="model-server", daemon=True
        )

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def say(self, *replies: Reply | Fault) -> None:
        """Add to the script."""
        with self._lock:
            self._script += replies

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _next(self, request: JsonDict, key: str) -> ModelReply | Fault:
        with self._lock:
            self.requests.append(request)
            self.keys.append(key)
            if self._key and key != self._key:
                return Fault(401, "the key is not valid")
            if not self._script:
                return Fault(400, "the script is over")
            step = self._script.pop(0)
        return step(request["messages"], request.get("tools", [])) if callable(step) else step


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def _owner(self) -> ModelServer:
        return self.server.owner  # type: ignore[attr-defined, no-any-return]

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  as the base class has it
        """Tests print nothing."""

    def do_GET(self) -> None:
        listed = [{"id": name, "object": "model", "created": 0, "owned_by": "tests"} for name in self._owner._models]
        self._json(200, {"object": "list", "data": listed})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        step = self._owner._next(body, self.headers.get("authorization", "").removeprefix("Bearer "))
        try:
            if isinstance(step, Fault):
                self._fail(step)
            elif body.get("stream"):
                self._stream(_events(step))
            else:
                self._json(200, _whole(step))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client has gone away

    def _fail(self, fault: Fault) -> None:
        if fault.hang:
            self._owner._stopped.wait(fault.hang)
        if fault.status != 200:
            self._json(fault.status, {"error": {"message": fault.message}}, fault.headers)
        elif fault.garbage:
            self._stream(iter(["{not json"]))
        else:
            self._stream(_events(ModelReply("this answer is cut")), cut_after=fault.cut_after)

    def _json(self, status: int, value: JsonDict, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {
            "content-type": "application/json",
            "content-length": str(len(data)),
            **(headers or {}),
        }.items():
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
            if cut_after is not None and number >= cut_after:
                return
            self.wfile.write(f"data: {event}\n\n".encode())
            self.wfile.flush()


def _events(reply: ModelReply) -> Iterator[str]:
    for start in range(0, len(reply.content), _PIECE_CHARS):
        yield _chunk({"content": reply.content[start : start + _PIECE_CHARS]})
    for index, call in enumerate(reply.tool_calls):
        function = call["function"]
        yield _chunk({"tool_calls": [{"index": index, "id": call["id"], "type": "function",
                                      "function": {"name": function["name"], "arguments": ""}}]})  # fmt: skip
        yield _chunk({"tool_calls": [{"index": index, "function": {"arguments": function["arguments"]}}]})
    yield _chunk({}, finish="tool_calls" if reply.tool_calls else "stop")
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    yield json.dumps({**_frame("chat.completion.chunk"), "choices": [], "usage": usage})
    yield "[DONE]"


def _chunk(delta: JsonDict, *, finish: str | None = None) -> str:
    choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": finish}
    return json.dumps({**_frame("chat.completion.chunk"), "choices": [choice]})


def _whole(reply: ModelReply) -> JsonDict:
    message = {"role": "assistant", "content": reply.content}
    if reply.tool_calls:
        message["tool_calls"] = [dict(call) for call in reply.tool_calls]  # type: ignore[assignment]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if reply.tool_calls else "stop"}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return {**_frame("chat.completion"), "choices": [choice], "usage": usage}


def _frame(kind: str) -> JsonDict:
    return {"id": "scripted", "object": kind, "created": int(time.time()), "model": "scripted"}

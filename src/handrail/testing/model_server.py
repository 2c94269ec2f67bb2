"""A server that speaks OpenAI's chat completions and Anthropic's messages, says what it was told to say, and fails on demand.

    with ModelServer([ModelReply("hello"), Fault(429), ModelReply("again")]) as server:
        model = OpenAIChat("scripted", base_url=server.base_url)

For tests of anything that asks a model over HTTP. It listens on loopback only.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from ..protocols import ModelReply
from ..types import JsonDict
from .model import Reply
from .model_wire import anthropic_events, chunk, events, named, raw_events, whole


@dataclass(frozen=True, slots=True)
class Fault:
    """What the server does instead of answering.

    `status` 200 with `cut_after` ends the stream after so many events without its end; `garbage` sends what is no JSON;
    `hang` seconds pass before anything is sent; `endless` sends the text again and again until the client goes away.
    """

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
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="model-server", daemon=True
        )

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        return step(request["messages"], request.get("tools", [])) if callable(step) else step

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
            if self._owner._stopped.is_set():
                return
            self.wfile.write(f"{named(event)}data: {event}\n\n".encode())
            self.wfile.flush()

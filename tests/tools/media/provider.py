"""An OpenAI-compatible provider of ours: it refuses what the real ones refuse, and answers as it is told."""

from __future__ import annotations

import base64
import io
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from PIL import Image

_CHAT = {"model", "messages"}
_IMAGES = {"model", "prompt", "n", "size"}
_SPEECH = {"model", "input", "voice", "response_format"}
_SIZES = {"1024x1024", "1536x1024", "1024x1536"}

Say = str | tuple[int, Any] | Callable[[dict[str, Any]], Any]


def png(width: int = 8, height: int = 8, colour: str = "red") -> bytes:
    written = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(written, "PNG")
    return written.getvalue()


class Provider:
    """`says` is what each model answers: a text, a status with a body, or a function of the request."""

    def __init__(self, key: str = "sk-the-key-of-the-tests") -> None:
        self.key, self.says = key, dict[str, Say]()
        self.requests: list[dict[str, Any]] = []
        self.images: list[Image.Image] = []
        self.held: threading.Event | None = None
        self.stored: bytes = png(32, 32)
        self._server = _QuietServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def close(self) -> None:
        if self.held is not None:
            self.held.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, path: str, body: dict[str, Any], key: str) -> tuple[int, Any]:
        if self.key and key != f"Bearer {self.key}":
            return 401, {"error": {"message": f"Incorrect API key provided: {key.removeprefix('Bearer ')}"}}
        self.requests.append({"path": path, **body})
        if self.held is not None:
            self.held.wait(60)
        said = self.says.get(body.get("model", ""))
        if said is None:
            return 404, {"error": {"message": f"The model {body.get('model')!r} does not exist"}}
        ways = {"/v1/chat/completions": self._chat, "/v1/images/generations": _images, "/v1/audio/speech": _speech}
        problem = ways[path](body)
        if problem:
            return 400, {"error": {"message": problem}}
        said = said(body) if callable(said) else said
        if isinstance(said, tuple):
            return said
        return 200, {"choices": [{"index": 0, "message": {"role": "assistant", "content": said}}]}

    def _chat(self, body: dict[str, Any]) -> str | None:
        if unknown := body.keys() - _CHAT:
            return f"Unknown parameter: {unknown}"
        for message in body["messages"]:
            if message["role"] not in ("system", "user"):
                return "a role that is not known"
            parts = message["content"] if isinstance(message["content"], list) else []
            for part in parts:
                if part["type"] == "image_url":
                    head, _, data = part["image_url"]["url"].partition(";base64,")
                    image = Image.open(io.BytesIO(base64.b64decode(data, validate=True)))
                    image.load()
                    if head != f"data:{Image.MIME[image.format or '']}" or image.format not in ("PNG", "JPEG"):
                        return f"Invalid image: {head}"
                    self.images.append(image)
        return None


class _QuietServer(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


def _images(body: dict[str, Any]) -> str | None:
    if unknown := body.keys() - _IMAGES:
        return f"Unknown parameter: {unknown}"
    return None if body["size"] in _SIZES and body["n"] == 1 and body["prompt"] else "Invalid value"


def _speech(body: dict[str, Any]) -> str | None:
    if unknown := body.keys() - _SPEECH:
        return f"Unknown parameter: {unknown}"
    return None if len(body["input"]) <= 4096 and body["voice"] else "Invalid value"


def _handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            """Tests print nothing."""

        def do_GET(self) -> None:
            self._send(200, provider.stored, "image/png")

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, answer = provider.answer(self.path, body, self.headers.get("authorization", ""))
            if isinstance(answer, bytes):
                self._send(status, answer, "audio/wav")
            else:
                self._send(status, json.dumps(answer).encode(), "application/json")

        def _send(self, status: int, data: bytes, kind: str) -> None:
            try:
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except OSError:
                self.close_connection = True  # the client has gone away

    return Handler

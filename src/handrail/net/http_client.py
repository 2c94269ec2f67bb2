"""HTTP requests to a server that the user configured: bounded in time and size, no redirects, retried after a 429."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import ssl
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.safe_text import safe_error
from ..errors import CallTimeout, ToolFailed

if TYPE_CHECKING:
    import httpx

MAX_REPLY_BYTES = 1024 * 1024
_MIN_RETRY_SECONDS = 0.1


class NotReached(ToolFailed):
    """Nobody listens at the address, or it cannot be found: nothing was sent."""


class Reply(NamedTuple):
    """What a server answered, whatever its status."""

    status: int
    body: bytes
    headers: httpx.Headers

    @property
    def is_good(self) -> bool:
        return 200 <= self.status < 300

    def json(self) -> Any:
        """The body's value; None when it is not JSON."""
        return _value(self.body)

    def failure(self, what: str) -> ToolFailed:
        """The error for an answer that is not a success. `what` names the server."""
        advice = ""
        if self.status in (401, 403):
            advice = "; the key or the permission is missing: tell the user"
        elif 300 <= self.status < 400:
            advice = "; redirects are not followed: the address has to be the final one"
        message = server_message(self.body)
        text = f"{what} answers {self.status}{': ' + message if message else ''}{advice}"
        return ToolFailed(text, status=self.status)

    def completion(self, what: str) -> str:
        """The text of a chat completion. Raises ToolFailed for any other answer."""
        if not self.is_good:
            raise self.failure(what)
        try:
            text = self.json()["choices"][0]["message"]["content"]
        except (TypeError, LookupError):
            raise ToolFailed(f"{what} did not answer with a chat completion") from None
        if not isinstance(text, str) or not text.strip():
            raise ToolFailed(f"{what} answered without text")
        return text


async def ask(
    method: str,
    url: str,
    *,
    what: str,
    seconds: float = 30.0,
    max_bytes: int = MAX_REPLY_BYTES,
    headers: dict[str, str] | None = None,
    **content: Any,
) -> Reply:
    """The server's answer. `content` is what httpx takes: json, content, files, data, params. Raises ToolFailed when there is
    no answer (NotReached if nothing was sent), or one that is too long. No message has the address: it may hold a key."""
    import httpx

    logging.getLogger("httpx").setLevel(logging.WARNING)  # it would log the address of every request
    end = time.monotonic() + seconds
    asked = {"accept-encoding": "identity", **(headers or {})}  # so that the limit counts real bytes
    try:
        async with asyncio.timeout(seconds), httpx.AsyncClient(timeout=seconds, verify=trusted()) as client:
            while True:
                async with client.stream(method, url, headers=asked, **content) as response:
                    reply = Reply(response.status_code, await _body(response, max_bytes, what), response.headers)
                if reply.status != 429 or time.monotonic() + _wait_of(reply) >= end:
                    return reply
                await asyncio.sleep(_wait_of(reply))
    except (TimeoutError, httpx.TimeoutException):
        raise CallTimeout(f"{what} did not answer within {seconds:g} s") from None
    except (httpx.InvalidURL, httpx.UnsupportedProtocol):
        raise ToolFailed(f"{what}: the configured address is not an http address") from None
    except httpx.HTTPError as error:
        kind = NotReached if isinstance(error, httpx.ConnectError) else ToolFailed
        raise kind(f"{what} cannot be reached: {str(error) or type(error).__name__}") from None


def trusted() -> ssl.SSLContext:
    """The certificates that are trusted here. Reading them takes longer than a request, so that it is done once."""
    return _read_certificates(*map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR")))


@lru_cache(maxsize=4)
def _read_certificates(*_: str | None) -> ssl.SSLContext:
    import httpx

    return httpx.create_ssl_context()


async def _body(response: httpx.Response, max_bytes: int, what: str) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in response.aiter_bytes():
        size += len(piece)
        if size > max_bytes:
            raise ToolFailed(f"{what} answers with more than {max_bytes:,} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def _wait_of(reply: Reply) -> float:
    """Seconds until a retry, from the fields and headers that servers use for it."""
    body = reply.json()
    body = body if isinstance(body, dict) else {}
    parameters = body.get("parameters")
    nested = parameters.get("retry_after") if isinstance(parameters, dict) else None
    ms = body.get("retry_after_ms")
    for value in (ms / 1000 if isinstance(ms, int | float) else None, body.get("retry_after"), nested,
                  reply.headers.get("retry-after")):  # fmt: skip
        try:
            return max(_MIN_RETRY_SECONDS, float(value))  # type: ignore[arg-type]
        except (TypeError, ValueError):
            continue
    return 1.0


def server_message(reply: bytes) -> str:
    """The server's error message in the body of a reply: from the usual fields, else the first line."""
    body = _value(reply)
    if isinstance(body, dict):
        for key in ("error", "message", "description", "detail"):
            value = body.get(key)
            if isinstance(value, dict):
                value = value.get("message")
            if isinstance(value, str) and value:
                return safe_error(value)[:300]
        return ""
    lines = reply.decode("utf-8", "replace").strip().splitlines()
    return safe_error(lines[0])[:300] if lines and not lines[0].startswith("<") else ""


def _value(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None

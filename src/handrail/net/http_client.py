"""Talk HTTP to a server that the operator configured: bounded in time and size, no redirects, patient when told to wait."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.safe_text import safe_error
from ..errors import CallTimeout, ToolFailed

if TYPE_CHECKING:
    import httpx

MAX_REPLY_BYTES = 1024 * 1024
_SHORTEST_WAIT_SECONDS = 0.1


class Reply(NamedTuple):
    """What a server answered, whatever its status."""

    status: int
    body: bytes
    headers: httpx.Headers

    @property
    def is_good(self) -> bool:
        return 200 <= self.status < 300

    def json(self) -> Any:
        """The body's value; None when it is no JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    def failure(self, what: str) -> ToolFailed:
        """What to tell of an answer that is no success. `what` is who answered."""
        advice = ""
        if self.status in (401, 403):
            advice = "; the key or the permission is missing: tell the user"
        elif 300 <= self.status < 400:
            advice = "; redirects are not followed: the address has to be the final one"
        said = _said(self)
        return ToolFailed(f"{what} answers {self.status}{': ' + said if said else ''}{advice}", status=self.status)


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
    """The server's answer. `content` is what httpx takes: json, content, files, data, params.

    Raises ToolFailed when there is no answer, or one that is too long. The address goes into no message: it may hold a key.
    """
    import httpx

    end = time.monotonic() + seconds
    asked = {"accept-encoding": "identity", **(headers or {})}  # so that what is counted is what came
    try:
        async with asyncio.timeout(seconds), httpx.AsyncClient(timeout=seconds) as client:
            while True:
                async with client.stream(method, url, headers=asked, **content) as response:
                    reply = Reply(response.status_code, await _body(response, max_bytes, what), response.headers)
                if reply.status != 429 or time.monotonic() + _wait_of(reply) >= end:
                    return reply
                await asyncio.sleep(_wait_of(reply))
    except (TimeoutError, httpx.TimeoutException):
        raise CallTimeout(f"{what} did not answer within {seconds:g} s") from None
    except (httpx.InvalidURL, httpx.UnsupportedProtocol):
        raise ToolFailed(f"{what}: the configured address is no http address") from None
    except httpx.HTTPError as error:
        raise ToolFailed(f"{what} cannot be reached: {str(error) or type(error).__name__}") from None


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
    """How long the server wants us to wait, in the ways that servers say it."""
    told = reply.json()
    told = told if isinstance(told, dict) else {}
    parameters = told.get("parameters")
    nested = parameters.get("retry_after") if isinstance(parameters, dict) else None
    ms = told.get("retry_after_ms")
    for value in (ms / 1000 if isinstance(ms, int | float) else None, told.get("retry_after"), nested,
                  reply.headers.get("retry-after")):  # fmt: skip
        try:
            return max(_SHORTEST_WAIT_SECONDS, float(value))  # type: ignore[arg-type]
        except (TypeError, ValueError):
            continue
    return 1.0


def _said(reply: Reply) -> str:
    """The error's own words: where services put them, else the first line of the body."""
    told = reply.json()
    if isinstance(told, dict):
        for key in ("error", "message", "description", "detail"):
            value = told.get(key)
            if isinstance(value, dict):
                value = value.get("message")
            if isinstance(value, str) and value:
                return safe_error(value)[:300]
        return ""
    lines = reply.body.decode("utf-8", "replace").strip().splitlines()
    return safe_error(lines[0])[:300] if lines and not lines[0].startswith("<") else ""

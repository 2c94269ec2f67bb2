"""The HTTP below every provider's client: certificates that are loaded once, limits per answer, and the reason of a refusal."""

from __future__ import annotations

import functools
import json
import re
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from ...errors import ModelError

if TYPE_CHECKING:
    import ssl

    import httpx2

# An answer is text: a larger or longer one would never end.
MAX_BYTES = 64 * 1024 * 1024
MAX_SECONDS = 3_600.0
_REASON_CHARS = 500
_STATUS = re.compile(r"\AError code: \d+(?: - )?")


def http_options() -> dict[str, Any]:
    """Arguments for the `DefaultAsyncHttpxClient` of a provider's package."""
    return {"verify": _certificates(), "event_hooks": {"response": [_bound]}}


@functools.cache
def _certificates() -> ssl.SSLContext:
    """Loading them takes tens of milliseconds, and a client is made for every answer."""
    import httpx2

    return httpx2.create_ssl_context()


def reason(error: Any) -> str:
    """The server's message, without the status that the client puts before it. Some servers send it only in the body."""
    message = _STATUS.sub("", str(error.message))
    body = getattr(error, "body", None)
    if not message and body:
        message = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    return " ".join(message.split())[:_REASON_CHARS] or "it gave no reason"


async def _bound(response: httpx2.Response) -> None:
    response.stream = _bounded(response.stream)


def _bounded(stream: Any) -> httpx2.AsyncByteStream:
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            received, end = 0, time.monotonic() + MAX_SECONDS
            async for data in stream:
                received += len(data)
                if received > MAX_BYTES:
                    raise ModelError(f"the answer has more than {MAX_BYTES:,} bytes and was stopped")
                if time.monotonic() > end:
                    raise ModelError(f"the answer had not ended after {MAX_SECONDS:,.0f} s and was stopped")
                yield data

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()

"""The HTTP below every provider's client: certificates that are loaded once, a bound on what one answer may send, and what a
server said when it refused."""

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

# An answer is text: one that is larger, or still comes after so long, does not end by itself.
MAX_BYTES = 64 * 1024 * 1024
MAX_SECONDS = 3_600.0
_REASON_CHARS = 500
_STATUS = re.compile(r"\AError code: \d+(?: - )?")


def http_options() -> dict[str, Any]:
    """What the `DefaultAsyncHttpxClient` of a provider's package is made with."""
    return {"verify": _certificates(), "event_hooks": {"response": [_bound]}}


@functools.cache
def _certificates() -> ssl.SSLContext:
    """Loading them takes tens of milliseconds, and a client is made for every answer."""
    import httpx2

    return httpx2.create_ssl_context()


def reason(error: Any) -> str:
    """What the server said, without the status that the client puts before it. Not every server says it where the client
    looks for it."""
    said = _STATUS.sub("", str(error.message))
    body = getattr(error, "body", None)
    if not said and body:
        said = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    return " ".join(said.split())[:_REASON_CHARS] or "it gave no reason"


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

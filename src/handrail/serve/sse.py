"""Server-sent events: each has a number, so that a new connection continues where the last one ended."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.responses import Response

# Proxies and browsers treat a silent connection as dead.
_HEARTBEAT_SECONDS = 15.0


def frame(kind: str, data: Any, number: int | None = None) -> bytes:
    lines = [f"event: {kind}"]
    if number is not None:
        lines.append(f"id: {number}")
    text = json.dumps(data, ensure_ascii=False, default=str)
    return "\n".join([*lines, f"data: {text}", "", ""]).encode("utf-8", "replace")


def streamed(pieces: AsyncIterator[bytes]) -> Response:
    """`pieces` are frames. They end when the client disconnects."""
    from starlette.responses import StreamingResponse

    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(_alive(pieces), media_type="text/event-stream", headers=headers)


async def _alive(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    frames = aiter(pieces)
    yield b": hello\n\n"
    upcoming: asyncio.Task[bytes] | None = None
    try:
        while True:
            upcoming = upcoming or asyncio.ensure_future(anext(frames))
            done, _ = await asyncio.wait({upcoming}, timeout=_HEARTBEAT_SECONDS)
            if not done:
                yield b": keep-alive\n\n"
                continue
            try:
                piece = upcoming.result()
            except StopAsyncIteration:
                return
            upcoming = None
            yield piece
    finally:
        if upcoming is not None:
            upcoming.cancel()
            with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration):
                await upcoming
        close = getattr(frames, "aclose", None)
        if close is not None:
            await close()

"""Events to a browser: one long answer, each event with its number, so that a new connection goes on where the last ended."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.responses import Response

# Proxies and browsers take a silent connection for a dead one.
_HEARTBEAT_SECONDS = 15.0


def frame(kind: str, data: Any, number: int | None = None) -> bytes:
    lines = [f"event: {kind}"]
    if number is not None:
        lines.append(f"id: {number}")
    text = json.dumps(data, ensure_ascii=False, default=str)
    return "\n".join([*lines, f"data: {text}", "", ""]).encode("utf-8", "replace")


def streamed(pieces: AsyncIterator[bytes]) -> Response:
    """`pieces` are frames. They end when the client is gone."""
    from starlette.responses import StreamingResponse

    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(_alive(pieces), media_type="text/event-stream", headers=headers)


async def _alive(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    following = aiter(pieces)
    yield b": hello\n\n"
    coming: asyncio.Task[bytes] | None = None
    try:
        while True:
            coming = coming or asyncio.ensure_future(anext(following))
            done, _ = await asyncio.wait({coming}, timeout=_HEARTBEAT_SECONDS)
            if not done:
                yield b": still here\n\n"
                continue
            try:
                piece = coming.result()
            except StopAsyncIteration:
                return
            coming = None
            yield piece
    finally:
        if coming is not None:
            coming.cancel()
            with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration):
                await coming
        close = getattr(following, "aclose", None)
        if close is not None:
            await close()

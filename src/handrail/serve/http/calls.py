"""Run tools: one call, as a whole or as it goes; the calls of a model's message together; long results page by page."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from ...types import CancelToken, JsonDict, Progress
from ..endpoint import Asked, Endpoint
from ..roles import Role
from ..sse import frame, streamed
from .shapes import ANYTHING, FLAG, TEXT, WHOLE, bounded, count, loose, many, record

_PAGE_CHARS = 50_000
_HTTP_TASK = "http"
_GONE = "the client went away"


async def call(asked: Asked) -> Any:
    """Run one tool. A result or an error, as the model would get it; with `stream` what it says on the way, too."""
    if asked.body.get("stream"):
        return streamed(_as_it_goes(asked))
    cancel = CancelToken()
    work = asyncio.ensure_future(_run(asked, cancel, None))
    # The body was read: what comes now is that the client hangs up.
    gone: asyncio.Future[Any] = asyncio.ensure_future(asked.request.receive())
    await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
    gone.cancel()
    if not work.done():
        cancel.cancel(_GONE)
    return {"result": _value(await work)}


async def _run(asked: Asked, cancel: CancelToken, on_progress: Any) -> Any:
    body = asked.body
    return await asked.served.here.runtime.ahandle(
        body["tool"],
        body.get("arguments", {}),
        body.get("task", _HTTP_TASK),
        None,
        body.get("session"),
        cancel=cancel,
        on_progress=on_progress,
    )


async def _as_it_goes(asked: Asked) -> AsyncIterator[bytes]:
    loop, cancel = asyncio.get_running_loop(), CancelToken()
    news: asyncio.Queue[bytes] = asyncio.Queue()

    def tell(progress: Progress) -> None:
        told = {"message": progress.message, "fraction": progress.fraction}
        loop.call_soon_threadsafe(news.put_nowait, frame("progress", told))
        asked.served.bus.publish("call.progress", tool=progress.tool, task=asked.body.get("task", _HTTP_TASK), **told)

    work = asyncio.ensure_future(_run(asked, cancel, tell))
    coming: asyncio.Future[bytes] = asyncio.ensure_future(news.get())
    try:
        while True:
            await asyncio.wait({work, coming}, return_when=asyncio.FIRST_COMPLETED)
            if coming.done():
                yield coming.result()
                coming = asyncio.ensure_future(news.get())
            elif work.done():
                yield frame("result", {"result": _value(work.result())})
                return
    finally:
        coming.cancel()
        cancel.cancel(_GONE)  # a call that has ended is not touched by it


def _value(outcome: Any) -> Any:
    """A result is JSON text for a model; here it is JSON already."""
    if not isinstance(outcome, str):
        return outcome
    try:
        return json.loads(outcome)
    except ValueError:
        return outcome


async def batch(asked: Asked) -> JsonDict:
    """Run the calls of a model's message, together where that is safe: the tool messages in its order."""
    body = asked.body
    messages = await asked.served.here.batches.run(
        body["tool_calls"], task_id=body.get("task", _HTTP_TASK), session_id=body.get("session")
    )
    return {"messages": messages}


async def result(asked: Asked) -> JsonDict:
    """A stored result, page by page."""
    results = asked.served.here.runtime.results
    assert results is not None
    text = await asyncio.to_thread(results.get, asked.path["id"])
    offset, limit = asked.query["offset"], asked.query["limit"]
    following = offset + limit
    return {
        "text": text[offset:following],
        "offset": offset,
        "total": len(text),
        "next": following if following < len(text) else None,
    }


async def recent(asked: Asked) -> JsonDict:
    """The calls that run now, and the last ones that ended."""
    live = asked.served.live
    return {"running": live.running(), "ended": live.recent()[-asked.query["limit"] :]}


_WHO = {"task": bounded(200, minLength=1), "session": bounded(200, minLength=1)}
_CALL = record(("tool",), tool=bounded(200), arguments=ANYTHING, stream=FLAG, **_WHO)
_BATCH = record(("tool_calls",), tool_calls={"type": "array", "maxItems": 1000, "items": ANYTHING}, **_WHO)
_PAGE = {
    "offset": {"type": "integer", "minimum": 0, "maximum": 2**40, "default": 0},
    "limit": count(_PAGE_CHARS, 1_000_000),
}
_NEXT = {"anyOf": [WHOLE, {"type": "null"}]}

ENDPOINTS = (
    Endpoint("POST", "/v1/calls", call, role=Role.OPERATE, body=_CALL, answer=loose(result={}), streams=True),
    Endpoint(
        "GET",
        "/v1/calls",
        recent,
        query={"limit": count(200, 2000)},
        answer=record(running=many(ANYTHING), ended=many(ANYTHING)),
    ),
    Endpoint("POST", "/v1/batches", batch, role=Role.OPERATE, body=_BATCH, answer=record(messages=many(ANYTHING))),
    Endpoint(
        "GET", "/v1/results/{id}", result, query=_PAGE, answer=record(text=TEXT, offset=WHOLE, total=WHOLE, next=_NEXT)
    ),
)

"""Run tools: one call, streamed or not; a batch of a model's calls; long results page by page."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from ...approval.display import visible
from ...core.outcome import value_of
from ...types import CancelToken, JsonDict, Progress
from ..endpoint import Endpoint, RequestContext
from ..event_bus import frame, streamed
from ..tokens import Role
from .shapes import ANYTHING, FLAG, OFFSET, TEXT, WHOLE, bounded, count, loose, many, maybe, record

_PAGE_CHARS = 50_000
_HTTP_TASK = "http"
_GONE = "the client went away"

_WHO = {"task": bounded(200, minLength=1), "session": bounded(200, minLength=1)}
_CALL = record(("tool",), tool=bounded(200), arguments=ANYTHING, stream=FLAG, **_WHO)
_CALLS = record(running=many(ANYTHING), ended=many(ANYTHING))
_BATCH = record(("tool_calls",), tool_calls={"type": "array", "maxItems": 1000, "items": ANYTHING}, **_WHO)
_PAGE = record(text=TEXT, offset=WHOLE, total=WHOLE, next=maybe(WHOLE))


def _tool(context: RequestContext) -> str:
    return visible(context.body["tool"])


def _batch_tools(context: RequestContext) -> str:
    functions = [each.get("function") for each in context.body["tool_calls"]]
    return visible(" ".join(str(each.get("name")) for each in functions if isinstance(each, dict)))


@Endpoint("POST", "/v1/calls", loose(result={}), role=Role.OPERATE, body=_CALL, streams=True, detail=_tool)
async def call(context: RequestContext) -> Any:
    """Run one tool. Returns its result or error as the model would get it; with `stream` also its progress."""
    if context.body.get("stream"):
        return streamed(_progress(context))
    cancel = CancelToken()
    work = asyncio.ensure_future(_run(context, cancel, None))
    # The body was read, so the next message is the client's disconnect.
    gone: asyncio.Future[Any] = asyncio.ensure_future(context.request.receive())
    await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
    gone.cancel()
    if not work.done():
        cancel.cancel(_GONE)
    return {"result": value_of(await work)}


async def _run(context: RequestContext, cancel: CancelToken, on_progress: Any) -> Any:
    body, how = context.body, {"cancel": cancel, "on_progress": on_progress}
    who = (body.get("task", _HTTP_TASK), None, body.get("session"))
    return await context.served.app.runtime.ahandle(body["tool"], body.get("arguments", {}), *who, **how)


async def _progress(context: RequestContext) -> AsyncIterator[bytes]:
    loop, cancel, task = asyncio.get_running_loop(), CancelToken(), context.body.get("task", _HTTP_TASK)
    frames: asyncio.Queue[bytes] = asyncio.Queue()

    def publish(progress: Progress) -> None:
        payload = {"message": progress.message, "fraction": progress.fraction}
        loop.call_soon_threadsafe(frames.put_nowait, frame("progress", payload))
        context.served.bus.publish("call.progress", tool=progress.tool, task=task, **payload)

    work = asyncio.ensure_future(_run(context, cancel, publish))
    work.add_done_callback(lambda _: frames.put_nowait(b""))  # after all that it published
    try:
        while piece := await frames.get():
            yield piece
        yield frame("result", {"result": value_of(work.result())})
    finally:
        cancel.cancel(_GONE)  # no effect on a call that has ended


@Endpoint("GET", "/v1/calls", _CALLS, limit=count(200, 2000))
async def recent(context: RequestContext) -> JsonDict:
    """Running calls, and the latest finished ones, of all processes that use this state folder."""
    live = context.served.live
    running = [*live.hooks.running(), *context.served.shared.running()]
    return {"running": running, "ended": live.recent()[-context.query["limit"] :]}


@Endpoint("POST", "/v1/batches", record(messages=many(ANYTHING)), role=Role.OPERATE, body=_BATCH, detail=_batch_tools)
async def batch(context: RequestContext) -> JsonDict:
    """Run the calls of a model's message, concurrently where that is safe. Returns the tool messages in order."""
    body = context.body
    who = {"task_id": body.get("task", _HTTP_TASK), "session_id": body.get("session")}
    return {"messages": await context.served.app.batches.run(body["tool_calls"], **who)}


@Endpoint("GET", "/v1/results/{id}", _PAGE, offset=OFFSET, limit=count(_PAGE_CHARS, 1_000_000))
def result(context: RequestContext) -> JsonDict:
    """A stored result, page by page."""
    results = context.served.app.runtime.results
    assert results is not None
    text, offset = results.get(context.path["id"]), context.query["offset"]
    following = offset + context.query["limit"]
    after = following if following < len(text) else None
    return {"text": text[offset:following], "offset": offset, "total": len(text), "next": after}

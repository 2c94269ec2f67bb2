"""Background processes: their state, their output, and their terminals."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

from ...environments.errors import NoSuchProcess
from ...processes.interact import send, typed
from ...processes.tracked import TrackedProcess
from ...types import JsonDict
from ..endpoint import Endpoint, HttpError, RequestContext
from ..event_bus import frame, streamed
from ..tokens import Role
from ..views import process_view
from .shapes import FLAG, TEXT, WHOLE, bounded, count, loose, many, record

_POLL_SECONDS = 0.05
_PIECE_BYTES = 64 * 1024


async def processes(context: RequestContext) -> JsonDict:
    """All background processes."""
    table = context.served.app.processes
    return {"processes": await asyncio.to_thread(lambda: [process_view(each) for each in table.list()])}


async def process(context: RequestContext) -> JsonDict:
    """One background process."""
    return await asyncio.to_thread(lambda: process_view(_of(context)))


async def process_log(context: RequestContext) -> JsonDict:
    """Its output from an offset on; secrets are masked."""
    offset, limit = context.query["offset"], context.query["limit"]

    def read() -> JsonDict:
        tracked = _of(context)
        piece = tracked.read(offset, limit)
        return {
            "text": tracked.mask(piece.data.decode("utf-8", "replace")),
            "offset": piece.offset,
            "next": piece.offset + len(piece.data),
            "end": piece.end,
        }

    return await asyncio.to_thread(read)


async def attach(context: RequestContext) -> Any:
    """Its output as a stream: events `output` with base64 of the raw bytes, for a terminal, and finally `ended`."""
    tracked = await asyncio.to_thread(_of, context)
    return streamed(_output(tracked, context.query["offset"]))


async def _output(tracked: TrackedProcess, offset: int) -> AsyncIterator[bytes]:
    while True:
        status = await asyncio.to_thread(tracked.status)
        piece = await asyncio.to_thread(tracked.read, offset, _PIECE_BYTES)
        if piece.data:
            offset = piece.offset + len(piece.data)
            shown = tracked.mask(piece.data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
            yield frame("output", {"data": base64.b64encode(shown).decode(), "next": offset})
        elif status.ended_at is not None:
            yield frame("ended", {"state": status.state.value, "exit_code": status.exit_code, "reason": status.reason})
            return
        else:
            await asyncio.sleep(_POLL_SECONDS)


async def write(context: RequestContext) -> JsonDict:
    """Type into it: a text, then keys by their names (`ENTER`, `C-c`, `UP`); `raw` is sent as it is."""
    body = context.body

    def write_input() -> None:
        tracked = _of(context)
        if "raw" in body:
            tracked.use(lambda running: running.write(body["raw"].encode()))
        else:
            send(tracked, typed(tracked, body.get("text", ""), body.get("keys", []), enter=body.get("enter", False)))

    await asyncio.to_thread(write_input)
    return {"ok": True}


async def resize(context: RequestContext) -> JsonDict:
    """Resize its terminal."""

    def change() -> None:
        tracked = _of(context)
        if not tracked.record.has_pty:
            raise HttpError(422, "no_terminal", "this process has no terminal")
        tracked.resize(context.body["rows"], context.body["columns"])

    await asyncio.to_thread(change)
    return {"ok": True}


async def kill(context: RequestContext) -> JsonDict:
    """Kill it, with everything it started."""

    def end() -> JsonDict:
        tracked = _of(context)
        tracked.kill()
        return process_view(tracked)

    return await asyncio.to_thread(end)


def _of(context: RequestContext) -> TrackedProcess:
    try:
        return context.served.app.processes.get(context.path["id"])
    except NoSuchProcess as error:
        raise HttpError(404, "not_found", str(error)) from None


_PROCESS = loose(id=TEXT, command=TEXT, state=TEXT)
_OFFSET = {"type": "integer", "minimum": 0, "maximum": 2**40, "default": 0}
_KEYS = {"type": "array", "maxItems": 100, "items": bounded(20)}
_INPUT = record((), text=bounded(100_000), keys=_KEYS, enter=FLAG, raw=bounded(100_000))
_SIZE = record(
    rows={"type": "integer", "minimum": 2, "maximum": 500}, columns={"type": "integer", "minimum": 2, "maximum": 500}
)
_OK = record(ok=FLAG)

ENDPOINTS = (
    Endpoint("GET", "/v1/processes", processes, answer=record(processes=many(_PROCESS))),
    Endpoint("GET", "/v1/processes/{id}", process, answer=_PROCESS),
    Endpoint(
        "GET",
        "/v1/processes/{id}/log",
        process_log,
        query={"offset": _OFFSET, "limit": count(100_000, 1_000_000)},
        answer=record(text=TEXT, offset=WHOLE, next=WHOLE, end=WHOLE),
    ),
    Endpoint("GET", "/v1/processes/{id}/output", attach, query={"offset": _OFFSET}, media="text/event-stream"),
    Endpoint("POST", "/v1/processes/{id}/input", write, role=Role.OPERATE, body=_INPUT, answer=_OK),
    Endpoint("POST", "/v1/processes/{id}/size", resize, role=Role.OPERATE, body=_SIZE, answer=_OK),
    Endpoint("DELETE", "/v1/processes/{id}", kill, role=Role.OPERATE, answer=_PROCESS),
)

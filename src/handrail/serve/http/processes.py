"""Background processes: their state, their output, and their terminals."""

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

from ...environments.errors import NoSuchProcess
from ...processes.interact import send, typed
from ...processes.tracked import TrackedProcess
from ...types import JsonDict
from ..endpoint import Endpoint, HttpError, RequestContext, Role
from ..event_bus import frame, streamed
from .shapes import FLAG, OFFSET, OK, TEXT, WHOLE, bounded, count, loose, many, record

_POLL_SECONDS = 0.05
_PIECE_BYTES = 64 * 1024
_PROCESS = loose(id=TEXT, command=TEXT, state=TEXT)
_LOG = record(text=TEXT, offset=WHOLE, next=WHOLE, end=WHOLE)
_KEYS = {"type": "array", "maxItems": 100, "items": bounded(20)}
_INPUT = record((), text=bounded(100_000), keys=_KEYS, enter=FLAG, raw=bounded(100_000))
_OF_RECORD = ("id", "environment", "pid", "has_pty", "rows", "columns", "started_at")
_SIDE = {"type": "integer", "minimum": 2, "maximum": 500}


@Endpoint("GET", "/v1/processes", record(processes=many(_PROCESS)))
def processes(context: RequestContext) -> JsonDict:
    """All background processes."""
    return {"processes": [_view(each) for each in context.served.app.processes.list()]}


@Endpoint("GET", "/v1/processes/{id}", _PROCESS)
def process(context: RequestContext) -> JsonDict:
    """One background process."""
    return _view(_of(context))


@Endpoint("GET", "/v1/processes/{id}/log", _LOG, offset=OFFSET, limit=count(100_000, 1_000_000))
def process_log(context: RequestContext) -> JsonDict:
    """Its output from an offset on; secrets are masked."""
    tracked = _of(context)
    piece = tracked.read(context.query["offset"], context.query["limit"])
    text, following = tracked.mask(piece.data.decode("utf-8", "replace")), piece.offset + len(piece.data)
    return {"text": text, "offset": piece.offset, "next": following, "end": piece.end}


@Endpoint("GET", "/v1/processes/{id}/output", media="text/event-stream", offset=OFFSET)
def attach(context: RequestContext) -> Any:
    """Its output as a stream: events `output` with base64 of the raw bytes, for a terminal, and finally `ended`."""
    return streamed(_output(_of(context), context.query["offset"]))


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


@Endpoint("POST", "/v1/processes/{id}/input", OK, role=Role.OPERATE, body=_INPUT)
def write(context: RequestContext) -> JsonDict:
    """Type into it: a text, then keys by their names (`ENTER`, `C-c`, `UP`); `raw` is sent as it is."""
    tracked, body = _of(context), context.body
    if "raw" in body:
        tracked.use(lambda running: running.write(body["raw"].encode()))
    else:
        send(tracked, typed(tracked, body.get("text", ""), body.get("keys", []), enter=body.get("enter", False)))
    return {"ok": True}


@Endpoint("POST", "/v1/processes/{id}/size", OK, role=Role.OPERATE, body=record(rows=_SIDE, columns=_SIDE))
def resize(context: RequestContext) -> JsonDict:
    """Resize its terminal."""
    tracked = _of(context)
    if not tracked.record.has_pty:
        raise HttpError(422, "no_terminal", "this process has no terminal")
    tracked.resize(context.body["rows"], context.body["columns"])
    return {"ok": True}


@Endpoint("DELETE", "/v1/processes/{id}", _PROCESS, role=Role.OPERATE)
def kill(context: RequestContext) -> JsonDict:
    """Kill it, with everything it started."""
    tracked = _of(context)
    tracked.kill()
    return _view(tracked)


def _of(context: RequestContext) -> TrackedProcess:
    try:
        return context.served.app.processes.get(context.path["id"])
    except NoSuchProcess as error:
        raise HttpError(404, "not_found", str(error)) from None


def _view(tracked: TrackedProcess) -> JsonDict:
    record, status = tracked.record, tracked.status()
    return {
        **{name: getattr(record, name) for name in _OF_RECORD},
        **{name: getattr(status, name) for name in ("exit_code", "ended_at", "reason")},
        "command": tracked.mask(record.command),
        "task": record.task_id,
        "session": record.session_id,
        "state": status.state.value,
    }

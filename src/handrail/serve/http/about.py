"""The server itself: health, API description, statistics, events, audit."""

import time
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import PlainTextResponse

from ... import __version__
from ...types import JsonDict
from ..endpoint import Endpoint, RequestContext, Role
from ..event_bus import Bus, frame, streamed
from .shapes import ANYTHING, NUMBER, TEXT, count, loose, many, record

_STATS = loose(since=NUMBER, minutes=many(ANYTHING), tools=many(ANYTHING), days=many(ANYTHING), waiting=NUMBER)
_SPENT = """
SELECT CAST(at / 86400 AS INTEGER) * 86400 AS day, model, sum(input_tokens) AS input_tokens,
  sum(output_tokens) AS output_tokens, sum(cost) AS cost
FROM model_calls WHERE at > ? GROUP BY day, model ORDER BY day, model
"""


@Endpoint("GET", "/health", record(status=TEXT, version=TEXT), role=None)
async def health(_: RequestContext) -> JsonDict:
    """Whether the server is up."""
    return {"status": "ok", "version": __version__}


@Endpoint("GET", "/v1/me", record(name=TEXT, role=TEXT))
async def me(context: RequestContext) -> JsonDict:
    """Your name and role."""
    return {"name": context.who.name, "role": context.who.role.word}


@Endpoint("GET", "/openapi.json", role=None)
async def openapi(_: RequestContext) -> JsonDict:
    """The OpenAPI description of this API."""
    from . import document

    return document()


@Endpoint("GET", "/v1/stats", _STATS)
def stats(context: RequestContext) -> JsonDict:
    """Calls per minute and durations per tool, both of the last day, and tokens and cost per day and model."""
    served = context.served
    return {
        "since": served.live.since,
        "minutes": served.live.minutes(),
        "tools": served.live.tools(),
        "days": [dict(row) for row in served.sessions.rows(_SPENT, (time.time() - 60 * 86400,))],
        "waiting": len(served.approvals.pending()),
    }


@Endpoint("GET", "/metrics", media="text/plain")
def metrics(context: RequestContext) -> object:
    """The same in the text format of Prometheus."""
    served, tools = context.served, context.served.live.tools()
    gauges = {
        "uptime_seconds": f"{time.time() - served.started:.0f}",
        "approvals_waiting": len(served.approvals.pending()),
        "calls_running": len(served.live.hooks.running()),
    }
    lines = []
    for name, value in gauges.items():
        lines += [f"# TYPE handrail_{name} gauge", f"handrail_{name} {value}"]
    for name, key, form in (("calls", "calls", "d"), ("call_errors", "errors", "d"), ("call_seconds", "total", ".6f")):
        lines.append(f"# TYPE handrail_{name}_total counter")
        lines += [f'handrail_{name}_total{{tool="{_label(each["tool"])}"}} {each[key]:{form}}' for each in tools]
    return PlainTextResponse("\n".join([*lines, ""]), media_type="text/plain; version=0.0.4")


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@Endpoint("GET", "/v1/events", media="text/event-stream", after={"type": "integer", "minimum": 0, "maximum": 2**60})
async def events(context: RequestContext) -> Any:
    """Events of calls, questions, agents and processes, from now or after the event `after` (or the header Last-Event-ID).

    An event `missed` says that some were dropped: fetch the full state again.
    """
    given = context.request.headers.get("last-event-id", "")
    after = context.query.get("after", int(given) if given.isascii() and given.isdigit() and len(given) < 20 else None)
    return streamed(_frames(context.served.bus, after))


async def _frames(bus: Bus, after: int | None) -> AsyncIterator[bytes]:
    last = bus.last_id if after is None else after  # events during the greeting are not missed
    yield frame("hello", {"last": last}, last)
    async for found in bus.follow(last):
        yield b"".join(each.frame for each in found)


@Endpoint("GET", "/v1/audit", record(audit=many(ANYTHING)), role=Role.OPERATE, limit=count(100, 10_000))
def audit(context: RequestContext) -> JsonDict:
    """The audit log of HTTP requests, the newest last."""
    return {"audit": [each._asdict() for each in context.served.keys.audited(context.query["limit"])]}

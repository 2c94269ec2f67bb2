"""The server itself: health, API description, statistics, events, audit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import PlainTextResponse

from ... import __version__
from ...types import JsonDict
from ..endpoint import Endpoint, RequestContext
from ..event_bus import Bus, frame, streamed
from ..tokens import Role
from .shapes import ANYTHING, NUMBER, TEXT, count, loose, many, record


async def health(_: RequestContext) -> JsonDict:
    """Whether the server is up."""
    return {"status": "ok", "version": __version__}


async def me(context: RequestContext) -> JsonDict:
    """Your name and role."""
    return {"name": context.who.name, "role": context.who.role.word}


async def openapi(_: RequestContext) -> JsonDict:
    """The OpenAPI description of this API."""
    from . import document

    return document()


async def stats(context: RequestContext) -> JsonDict:
    """Calls per minute and durations per tool, both of the last day, and tokens and cost per day and model."""
    served = context.served
    spent = await asyncio.to_thread(
        served.sessions.rows,
        "SELECT CAST(at / 86400 AS INTEGER) * 86400 AS day, model, sum(input_tokens) AS input_tokens, "
        "sum(output_tokens) AS output_tokens, sum(cost) AS cost FROM model_calls WHERE at > ? GROUP BY day, model "
        "ORDER BY day, model",
        (time.time() - 60 * 86400,),
    )
    return {
        "since": served.live.since,
        "minutes": served.live.minutes(),
        "tools": served.live.tools(),
        "days": [dict(row) for row in spent],
        "waiting": len(served.approvals.pending()),
    }


async def metrics(context: RequestContext) -> object:
    """The same in the text format of Prometheus."""
    served = context.served
    lines = [
        "# TYPE handrail_uptime_seconds gauge",
        f"handrail_uptime_seconds {time.time() - served.started:.0f}",
        "# TYPE handrail_approvals_waiting gauge",
        f"handrail_approvals_waiting {len(served.approvals.pending())}",
        "# TYPE handrail_calls_running gauge",
        f"handrail_calls_running {len(served.live.running())}",
        "# TYPE handrail_calls_total counter",
    ]
    tools = served.live.tools()
    lines += [f'handrail_calls_total{{tool="{_label(each["tool"])}"}} {each["calls"]}' for each in tools]
    lines.append("# TYPE handrail_call_errors_total counter")
    lines += [f'handrail_call_errors_total{{tool="{_label(each["tool"])}"}} {each["errors"]}' for each in tools]
    lines.append("# TYPE handrail_call_seconds_total counter")
    lines += [f'handrail_call_seconds_total{{tool="{_label(each["tool"])}"}} {each["total"]:.6f}' for each in tools]
    return PlainTextResponse("\n".join([*lines, ""]), media_type="text/plain; version=0.0.4")


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


async def audit(context: RequestContext) -> JsonDict:
    """The audit log of HTTP requests, the newest last."""
    found = await asyncio.to_thread(context.served.keys.audited, context.query["limit"])
    return {"audit": [each._asdict() for each in found]}


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


_AFTER: JsonDict = {"after": {"type": "integer", "minimum": 0, "maximum": 2**60}}
_STATS = loose(since=NUMBER, minutes=many(ANYTHING), tools=many(ANYTHING), days=many(ANYTHING), waiting=NUMBER)

ENDPOINTS = (
    Endpoint("GET", "/health", health, role=None, answer=record(status=TEXT, version=TEXT)),
    Endpoint("GET", "/v1/me", me, answer=record(name=TEXT, role=TEXT)),
    Endpoint("GET", "/openapi.json", openapi, role=None),
    Endpoint("GET", "/v1/stats", stats, answer=_STATS),
    Endpoint("GET", "/metrics", metrics, media="text/plain"),
    Endpoint("GET", "/v1/events", events, query=_AFTER, media="text/event-stream"),
    Endpoint(
        "GET",
        "/v1/audit",
        audit,
        role=Role.OPERATE,
        query={"limit": count(100, 10_000)},
        answer=record(audit=many(ANYTHING)),
    ),
)

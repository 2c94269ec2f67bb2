"""The event stream."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from ..endpoint import Endpoint, RequestContext
from ..event_bus import Bus, frame, streamed


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


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/events",
        events,
        query={"after": {"type": "integer", "minimum": 0, "maximum": 2**60}},
        media="text/event-stream",
    ),
)

"""The events of HTTP streams, so that a client whose stream was cut can take it up again."""

from __future__ import annotations

import itertools
from collections import deque
from typing import Any

from mcp.server.streamable_http import EventMessage, EventStore

# The oldest of more are forgotten; a client that is away for longer starts again.
_MAX_EVENTS = 5000
_MAX_CHARS = 32 << 20


class EventLog(EventStore):
    """In memory, for all streams of one server."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._events: deque[tuple[int, str, Any, int]] = deque()
        self._chars = 0

    async def store_event(self, stream_id: str, message: Any) -> str:
        number = next(self._numbers)
        size = len(message.model_dump_json()) if message is not None else 0
        self._events.append((number, stream_id, message, size))
        self._chars += size
        while len(self._events) > _MAX_EVENTS or self._chars > _MAX_CHARS:
            self._chars -= self._events.popleft()[3]
        return str(number)

    async def replay_events_after(self, last_event_id: str, send_callback: Any) -> str | None:
        last = int(last_event_id) if last_event_id.isdigit() else 0
        stream = next((each[1] for each in self._events if each[0] == last), None)
        for number, owner, message, _ in list(self._events):
            if owner == stream and number > last and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream

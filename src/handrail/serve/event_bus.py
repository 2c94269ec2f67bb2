"""What happens, told to all who watch: in order, from any point that is still remembered, and nobody waits for a slow one.

Events are kept in one ring. A watcher has no queue of its own, only a place in the ring: one that is too slow misses what has
been forgotten meanwhile, is told so, and looks at the whole again.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator
from itertools import islice
from typing import TYPE_CHECKING

from .sse import frame

if TYPE_CHECKING:
    from ..types import JsonDict

KEPT_EVENTS = 10_000
# Who comes back after a while gets so many at once: writing them out must not hold up the others.
_MAX_AT_ONCE = 500
# Who watches is woken at most so often: a browser draws no faster, and calls are not slowed by being watched.
_PAUSE_SECONDS = 0.02
MISSED = "missed"


class Event:
    __slots__ = ("_frame", "at", "data", "id", "kind")

    def __init__(self, number: int, kind: str, data: JsonDict) -> None:
        self.id, self.at, self.kind, self.data = number, time.time(), kind, data
        self._frame: bytes | None = None

    @property
    def frame(self) -> bytes:
        """As browsers get it; written out once, however many watch."""
        if self._frame is None:
            self._frame = frame(self.kind, {"at": self.at, **self.data}, self.id)
        return self._frame


class Bus:
    """Publish from any thread; follow in the loop of `attach`."""

    def __init__(self, keep: int = KEPT_EVENTS) -> None:
        # Numbers go on rising over restarts, so that one from before is known to be old.
        self._next = int(time.time() * 1_000_000)
        self._events: deque[Event] = deque(maxlen=keep)
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news: asyncio.Future[None] | None = None
        self._is_woken = False

    @property
    def last_id(self) -> int:
        return self._next - 1

    def attach(self) -> None:
        """Followers live in this loop."""
        self._loop = asyncio.get_running_loop()

    def publish(self, kind: str, /, **data: object) -> int:
        """The event's number."""
        with self._lock:
            event = Event(self._next, kind, data)
            self._next += 1
            self._events.append(event)
            wake = self._news is not None and not self._is_woken
            self._is_woken = self._is_woken or wake
        if wake and self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(self._wake)
            except RuntimeError:  # the loop was closed: nobody follows any more
                self._news = None
        return event.id

    def _wake(self) -> None:
        with self._lock:
            news, self._news, self._is_woken = self._news, None, False
        if news is not None and not news.done():
            news.set_result(None)

    def after(self, last_id: int) -> list[Event]:
        """The next after that event. One event MISSED, which leads to the present, when some are forgotten, or were before a
        restart; the clock may have been set back since then, so that the number is still to come."""
        with self._lock:
            behind, kept = self.last_id - last_id, len(self._events)
            if 0 <= behind <= kept:
                found = list(islice(reversed(self._events), max(0, behind - _MAX_AT_ONCE), behind))
                return found[::-1]
            return [Event(self.last_id, MISSED, {})]

    async def follow(self, last_id: int | None = None) -> AsyncIterator[list[Event]]:
        """Events as they come, some at a time. None begins now."""
        place = self.last_id if last_id is None else last_id
        while True:
            found = self.after(place)
            if found:
                place = found[-1].id
                yield found
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            with self._lock:
                if place != self.last_id:
                    continue
                if self._news is None:
                    self._news = asyncio.get_running_loop().create_future()
                news = self._news
            await asyncio.shield(news)

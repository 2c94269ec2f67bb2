"""Events for all watchers: in order, from any point that is still kept, without waiting for slow watchers.

Events are kept in one ring buffer. A watcher has a cursor instead of a queue: one that is too slow gets an event MISSED in place
of what was dropped, and fetches the full state again. Each event has a number, so that a new connection of server-sent events
continues where the last one ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections import deque
from collections.abc import AsyncIterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..types import JsonDict

if TYPE_CHECKING:
    from starlette.responses import Response

KEPT_EVENTS = 10_000
# Per batch, after a reconnect: serializing them must not delay other watchers.
_MAX_BATCH = 500
# Pause between two batches: a browser renders no faster, and calls are not slowed by watchers.
_BATCH_SECONDS = 0.02
MISSED = "missed"
# Proxies and browsers treat a silent connection as dead.
_HEARTBEAT_SECONDS = 15.0


def frame(kind: str, data: Any, number: int | None = None) -> bytes:
    lines = [f"event: {kind}"]
    if number is not None:
        lines.append(f"id: {number}")
    text = json.dumps(data, ensure_ascii=False, default=str)
    return "\n".join([*lines, f"data: {text}", "", ""]).encode("utf-8", "replace")


def streamed(pieces: AsyncIterator[bytes]) -> Response:
    """`pieces` are frames. They end when the client disconnects."""
    from starlette.responses import StreamingResponse

    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(_alive(pieces), media_type="text/event-stream", headers=headers)


async def _alive(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    frames = aiter(pieces)
    yield b": hello\n\n"
    upcoming: asyncio.Task[bytes] | None = None
    try:
        while True:
            upcoming = upcoming or asyncio.ensure_future(anext(frames))
            done, _ = await asyncio.wait({upcoming}, timeout=_HEARTBEAT_SECONDS)
            if not done:
                yield b": keep-alive\n\n"
                continue
            try:
                piece = upcoming.result()
            except StopAsyncIteration:
                return
            upcoming = None
            yield piece
    finally:
        if upcoming is not None:
            upcoming.cancel()
            with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration):
                await upcoming
        if (close := getattr(frames, "aclose", None)) is not None:
            await close()


class Event:
    __slots__ = ("_frame", "at", "data", "id", "kind")

    def __init__(self, number: int, kind: str, data: JsonDict) -> None:
        self.id, self.at, self.kind, self.data = number, time.time(), kind, data
        self._frame: bytes | None = None

    @property
    def frame(self) -> bytes:
        """As sent to browsers; serialized once for all watchers."""
        if self._frame is None:
            self._frame = frame(self.kind, {"at": self.at, **self.data}, self.id)
        return self._frame


class Bus:
    """Publish from any thread; follow on the loop of `attach`."""

    def __init__(self, keep: int = KEPT_EVENTS) -> None:
        # Numbers keep rising across restarts, so that an older one is recognized.
        self._next = int(time.time() * 1_000_000)
        self._events: deque[Event] = deque(maxlen=keep)
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._published: asyncio.Future[None] | None = None
        self._is_woken = False

    @property
    def last_id(self) -> int:
        return self._next - 1

    def attach(self) -> None:
        """Followers run on the current loop."""
        self._loop = asyncio.get_running_loop()

    def publish(self, kind: str, /, **data: object) -> int:
        """Returns the event's number."""
        with self._lock:
            event = Event(self._next, kind, data)
            self._next += 1
            self._events.append(event)
            wake = self._published is not None and not self._is_woken
            self._is_woken = self._is_woken or wake
        if wake and self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(self._wake)
            except RuntimeError:  # the loop is closed: there are no followers any more
                self._published = None
        return event.id

    def _wake(self) -> None:
        with self._lock:
            published, self._published, self._is_woken = self._published, None, False
        if published is not None and not published.done():
            published.set_result(None)

    def after(self, last_id: int) -> list[Event]:
        """The next events after that one. A single event MISSED with the latest number if some were dropped or are from before
        a restart; its number may even be in the future if the clock was set back."""
        with self._lock:
            behind, kept = self.last_id - last_id, len(self._events)
            if 0 <= behind <= kept:
                found = list(islice(reversed(self._events), max(0, behind - _MAX_BATCH), behind))
                return found[::-1]
            return [Event(self.last_id, MISSED, {})]

    async def follow(self, last_id: int | None = None) -> AsyncIterator[list[Event]]:
        """Batches of events as they are published. None starts now."""
        cursor = self.last_id if last_id is None else last_id
        while True:
            if found := self.after(cursor):
                cursor = found[-1].id
                yield found
                await asyncio.sleep(_BATCH_SECONDS)
                continue
            with self._lock:
                if cursor != self.last_id:
                    continue
                if self._published is None:
                    self._published = asyncio.get_running_loop().create_future()
                published = self._published
            await asyncio.shield(published)

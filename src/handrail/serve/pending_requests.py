"""Open approval questions: published when they are asked and closed, whichever process asks or answers."""

from __future__ import annotations

import asyncio
import logging
import time

from ..errors import StoreError
from ..protocols import ApprovalRequest, Reply
from ..store.approvals import ApprovalStore, State, StoredRequest
from .event_bus import Bus
from .live_calls import LiveCalls
from .views import request_view

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.25
_KEEP_POLLING_SECONDS = 5.0


class ServedApprover:
    """Leaves the question in the store for the console, chats and the command line. It never answers itself."""

    name = "serve"

    def __init__(self, watch: WaitingRequests, live: LiveCalls) -> None:
        self._watch, self._live = watch, live

    async def decide(self, request: ApprovalRequest) -> Reply:
        self._watch.poll_soon(request.id)
        since = time.monotonic()
        never: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        try:
            return await never
        finally:
            self._live.waited(request.tool, request.task_id, request.session_id, time.monotonic() - since)
            self._watch.poll_soon()  # answered, timed out or cancelled: the store only reports answers


class WaitingRequests:
    """Publishes `approval.asked` and `approval.over`, each once per request."""

    def __init__(self, store: ApprovalStore, bus: Bus) -> None:
        self._store, self._bus = store, bus
        self._known: dict[str, StoredRequest] = {}
        self._poll_until = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._poll_now: asyncio.Event | None = None

    def poll_soon(self, _: str = "") -> None:
        """From any thread: something may have changed."""
        # A write may not be visible at the first poll, and our own writes do not change the version.
        self._poll_until = time.monotonic() + _KEEP_POLLING_SECONDS
        if self._loop is not None and self._poll_now is not None:
            try:
                self._loop.call_soon_threadsafe(self._poll_now.set)
            except RuntimeError:
                log.debug("the loop is closed")

    async def run(self) -> None:
        """Runs until cancelled."""
        self._loop, self._poll_now = asyncio.get_running_loop(), asyncio.Event()
        forget = self._store.listen(self.poll_soon)
        seen = -1
        try:
            while True:
                try:
                    version = self._store.database.version_of_data()
                    if version != seen or time.monotonic() < self._poll_until or self._next_expiry() <= time.time():
                        self._poll_now.clear()
                        self.poll()
                    seen = version
                except StoreError as error:
                    log.warning("questions cannot be read: %s", error)
                try:
                    await asyncio.wait_for(self._poll_now.wait(), _POLL_SECONDS)
                except TimeoutError:
                    continue
        finally:
            forget()

    def poll(self) -> None:
        """Publish what is new and what is closed."""
        now = {stored.request.id: stored for stored in self._store.pending()}
        for request_id in self._known.keys() - now.keys():
            self._bus.publish("approval.over", **self._closed(request_id))
        for request_id in now.keys() - self._known.keys():
            self._bus.publish("approval.asked", **request_view(now[request_id]))
        self._known = now

    def _closed(self, request_id: str) -> dict[str, object]:
        try:
            return request_view(self._store.get(request_id))
        except LookupError:
            return {**request_view(self._known[request_id]), "state": State.EXPIRED.value}

    def _next_expiry(self) -> float:
        return min((stored.request.expires_at for stored in self._known.values()), default=float("inf"))

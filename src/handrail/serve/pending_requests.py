"""Questions that wait for a person: told when they come and when they are over, whichever process asked or answered."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from ..errors import StoreError
from ..store.approvals import State, StoredRequest
from .views import request_view

if TYPE_CHECKING:
    from ..protocols import ApprovalRequest, Reply
    from ..store.approvals import ApprovalStore
    from .event_bus import Bus

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.25
_LOOK_ON_SECONDS = 5.0


class ServedApprover:
    """Leaves the question in the store, where the console, chats and the command line find it. It never answers itself."""

    name = "serve"

    def __init__(self, watch: WaitingRequests) -> None:
        self._watch = watch

    async def decide(self, request: ApprovalRequest) -> Reply:
        self._watch.look_soon(request.id)
        never: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        try:
            return await never
        finally:
            self._watch.look_soon()  # answered, out of time, or withdrawn: the store tells only of answers


class WaitingRequests:
    """Publishes `approval.asked` and `approval.over`, each once a request."""

    def __init__(self, store: ApprovalStore, bus: Bus) -> None:
        self._store, self._bus = store, bus
        self._known: dict[str, StoredRequest] = {}
        self._look_until = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._look_now: asyncio.Event | None = None

    def look_soon(self, _: str = "") -> None:
        """From any thread: something may have changed."""
        # What is about to be written may not be there at the first look, and our own writes change no version.
        self._look_until = time.monotonic() + _LOOK_ON_SECONDS
        if self._loop is not None and self._look_now is not None:
            try:
                self._loop.call_soon_threadsafe(self._look_now.set)
            except RuntimeError:
                log.debug("nobody looks any more")

    async def run(self) -> None:
        """Until cancelled."""
        self._loop, self._look_now = asyncio.get_running_loop(), asyncio.Event()
        forget = self._store.listen(self.look_soon)
        seen = -1
        try:
            while True:
                try:
                    version = self._store.database.version_of_data()
                    if version != seen or time.monotonic() < self._look_until or self._next_end() <= time.time():
                        self._look_now.clear()
                        self.look()
                    seen = version
                except StoreError as error:
                    log.warning("questions cannot be looked for: %s", error)
                try:
                    await asyncio.wait_for(self._look_now.wait(), _POLL_SECONDS)
                except TimeoutError:
                    continue
        finally:
            forget()

    def look(self) -> None:
        """Tell what is new and what is over."""
        now = {stored.request.id: stored for stored in self._store.pending()}
        for request_id in self._known.keys() - now.keys():
            self._bus.publish("approval.over", **self._over(request_id))
        for request_id in now.keys() - self._known.keys():
            self._bus.publish("approval.asked", **request_view(now[request_id]))
        self._known = now

    def _over(self, request_id: str) -> dict[str, object]:
        try:
            return request_view(self._store.get(request_id))
        except LookupError:
            return {**request_view(self._known[request_id]), "state": State.EXPIRED.value}

    def _next_end(self) -> float:
        return min((stored.request.expires_at for stored in self._known.values()), default=float("inf"))

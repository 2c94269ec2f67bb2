"""Wait for the answer to a request without holding a thread: told at once of one from this process, soon of one from another.

One look at the database every quarter of a second serves all requests that wait in a loop; a look that finds nothing new
costs some microseconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from ..errors import StoreError

if TYPE_CHECKING:
    from ..store.approvals import ApprovalStore

log = logging.getLogger(__name__)

POLL_SECONDS = 0.25


class Inbox:
    """Who waits for which request. Each waits in its own loop."""

    def __init__(self, store: ApprovalStore) -> None:
        self._store = store
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._looking: dict[asyncio.AbstractEventLoop, asyncio.Task[None]] = {}
        store.listen(self._arrived)

    async def wait(self, request_id: str) -> None:
        """Until the request has an answer."""
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[None] = loop.create_future()
        self._waiting[request_id] = answered
        if loop not in self._looking:
            self._looking[loop] = loop.create_task(self._look(loop))
        try:
            if self._store.answered_among([request_id]):  # between the asking and now
                return
            await answered
        finally:
            del self._waiting[request_id]
            if not self._waiting_in(loop):
                looking = self._looking.pop(loop)
                looking.cancel()
                await asyncio.wait({looking})

    def _waiting_in(self, loop: asyncio.AbstractEventLoop) -> list[str]:
        return [name for name, future in tuple(self._waiting.items()) if future.get_loop() is loop]

    async def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        seen = None
        while True:
            try:
                version = self._store.database.version_of_data()
                if version != seen:
                    for request_id in self._store.answered_among(self._waiting_in(loop)):
                        self._arrived(request_id)
                seen = version
            except StoreError as error:
                log.warning("answers cannot be looked for: %s", error)
            await asyncio.sleep(POLL_SECONDS)

    def _arrived(self, request_id: str) -> None:
        future = self._waiting.get(request_id)
        if future is None:
            return
        with contextlib.suppress(RuntimeError):  # its loop was closed meanwhile, and nobody waits there any more
            future.get_loop().call_soon_threadsafe(_finish, future)


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)

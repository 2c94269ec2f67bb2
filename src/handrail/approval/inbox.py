"""Wait for the answer to a request without holding a thread: immediate from this process, polled from other processes.

One poll of the database every quarter of a second serves all requests that wait in a loop; a poll that finds nothing new
costs a few microseconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from ..base.loops import on_database
from ..errors import StoreError

if TYPE_CHECKING:
    from ..store.approvals import ApprovalStore

log = logging.getLogger(__name__)

POLL_SECONDS = 0.25


class Inbox:
    """The requests that are waited for, each in its own event loop."""

    def __init__(self, store: ApprovalStore) -> None:
        self._store = store
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._polls: dict[asyncio.AbstractEventLoop, asyncio.Task[None]] = {}
        store.listen(self._arrived)

    async def wait(self, request_id: str) -> None:
        """Until the request has an answer."""
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[None] = loop.create_future()
        self._waiting[request_id] = answered
        if loop not in self._polls:
            self._polls[loop] = loop.create_task(self._poll(loop))
        try:
            if not await on_database(self._store.answered_among, [request_id]):  # else answered since it was stored
                await answered
        finally:
            del self._waiting[request_id]
            if not self._waiting_in(loop):
                poll = self._polls.pop(loop)
                poll.cancel()
                await asyncio.wait({poll})

    def _waiting_in(self, loop: asyncio.AbstractEventLoop) -> list[str]:
        return [name for name, future in tuple(self._waiting.items()) if future.get_loop() is loop]

    async def _poll(self, loop: asyncio.AbstractEventLoop) -> None:
        seen = None
        while True:
            try:
                version = await on_database(self._store.database.version_of_data)
                if version != seen:
                    for request_id in await on_database(self._store.answered_among, self._waiting_in(loop)):
                        self._arrived(request_id)
                seen = version
            except StoreError as error:
                log.warning("the store cannot be polled for answers: %s", error)
            await asyncio.sleep(POLL_SECONDS)

    def _arrived(self, request_id: str) -> None:
        future = self._waiting.get(request_id)
        if future is None:
            return
        with contextlib.suppress(RuntimeError):  # its loop was closed meanwhile
            future.get_loop().call_soon_threadsafe(_finish, future)


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)

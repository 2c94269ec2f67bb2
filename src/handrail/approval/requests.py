"""Ask, and take the first answer: the approver's, or one that comes through the store.

Everything ends in an Answer. Silence, failure and a timeout are a no, each with its reason. Answers of this
process arrive at once; one poll per event loop finds those of others, and holds no thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import time
from functools import partial
from typing import TYPE_CHECKING

from ..base.async_bridge import is_being_cancelled, is_interrupt
from ..base.loops import on_database
from ..base.workers import database_lane, pool
from ..errors import StoreError
from ..protocols import Answer, ApprovalRequest, Approver, Decision, Reply
from ..store.approvals import ApprovalStore, State, StoredRequest
from .display import MAX_CHARS, pieces
from .preview import bounded, fingerprint_of
from .secrets import without_secrets

if TYPE_CHECKING:
    from concurrent.futures import Future

log = logging.getLogger(__name__)

NOBODY = "nobody"
_MAX_KEPT = 8 * MAX_CHARS


class ApprovalRequests:
    """Puts requests into a store and waits for the first answer."""

    def __init__(self, store: ApprovalStore) -> None:
        self._store = store
        self._inbox = Inbox(store)

    async def ask(self, request: ApprovalRequest, approver: Approver) -> tuple[ApprovalRequest, Answer]:
        """The request with its id, and its answer. Raises StoreError."""
        request = request._replace(fingerprint=request.fingerprint or fingerprint_of(request))
        request, answer = await self._first_answer(request, approver)
        if answer.decision.allows and answer.decision not in request.offers:
            answer = answer._replace(decision=Decision.ONCE)  # a longer yes than was offered counts once
        return request, answer

    async def _first_answer(self, request: ApprovalRequest, approver: Approver) -> tuple[ApprovalRequest, Answer]:
        stored = await self._stored(request)
        request = request._replace(id=stored.request.id, expires_at=stored.request.expires_at)
        if stored.state is State.ANSWERED and (answer := await on_database(self._store.claim, request.id)) is not None:
            return request, answer  # answered after the process that asked first had exited
        local = asyncio.ensure_future(consult(approver, request))
        elsewhere = asyncio.ensure_future(self._inbox.wait(request.id))
        seconds = max(0.0, request.expires_at - time.time())
        try:
            await asyncio.wait({local, elsewhere}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            own = local.result() if local.done() and not elsewhere.done() else None
            return request, await on_database(self._settled, request, own, elsewhere.done(), seconds)
        except BaseException:
            with contextlib.suppress(StoreError):
                self._store.withdraw(request.id)
            raise
        finally:
            for task in (local, elsewhere):
                task.cancel()
            await asyncio.gather(local, elsewhere, return_exceptions=True)

    async def _stored(self, request: ApprovalRequest) -> StoredRequest:
        """A request that is stored while its caller is cancelled is taken back."""
        storing = database_lane.submit(partial(self._store.ask, kept(request), fingerprint=request.fingerprint))
        try:
            return await asyncio.shield(asyncio.wrap_future(storing))
        except asyncio.CancelledError:
            storing.add_done_callback(self._take_back)
            raise

    def _take_back(self, storing: Future[StoredRequest]) -> None:
        with contextlib.suppress(StoreError):
            self._store.withdraw(storing.result().request.id)

    def _settled(self, request: ApprovalRequest, own: Answer | None, is_answered: bool, seconds: float) -> Answer:
        if own is not None:
            self._store.answer(request.id, own)
        elif not is_answered:
            self._store.withdraw(request.id, state=State.EXPIRED)
        # The first answer in the store decides, even if another came a moment later.
        answer = self._store.claim(request.id)
        return answer or Answer(Decision.DENY, NOBODY, f"nobody answered within {seconds:.0f} s")


async def consult(approver: Approver, request: ApprovalRequest) -> Answer:
    """One approver's answer. Never fails: anything but a yes is a no."""
    name = str(getattr(approver, "name", "") or type(approver).__name__)
    try:
        reply = await reply_of(approver, request)
    except asyncio.CancelledError:
        if is_being_cancelled():
            raise
        return Answer(Decision.DENY, name, "asking was cancelled")
    except BaseException as error:
        if is_interrupt(error):
            raise
        log.warning("the approver %s failed: %s: %s", name, type(error).__name__, error)
        return Answer(Decision.DENY, name, f"asking failed: {type(error).__name__}: {error}")
    if isinstance(reply, Decision):
        reply = Answer(reply)
    if not isinstance(reply, Answer) or not isinstance(reply.decision, Decision):
        return Answer(Decision.DENY, name, "no answer was given")
    return reply._replace(by=reply.by or name)


def kept(request: ApprovalRequest) -> ApprovalRequest:
    """The request as it is stored: without secrets, and not longer than anybody would read."""
    text, concerns = request.text, request.concerns
    request = request._replace(preview=bounded(without_secrets(request.preview)[0]))
    if len(text) > _MAX_KEPT:
        shown = pieces(text, [(concern.start, concern.end) for concern in concerns])
        whole = request.preview or bounded(without_secrets(text)[0])
        text = "".join(piece.text for piece in shown)
        concerns = tuple(concern._replace(start=0, end=len(text)) for concern in concerns)
        return request._replace(text=text[:_MAX_KEPT], concerns=concerns, arguments={}, preview=whole)
    text, spans = without_secrets(text, [(concern.start, concern.end) for concern in concerns])
    moved = (concern._replace(start=start, end=end) for concern, (start, end) in zip(concerns, spans, strict=True))
    return request._replace(text=text, concerns=tuple(moved), arguments={})


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


async def reply_of(approver: Approver, request: ApprovalRequest) -> Reply:
    """An async approver is awaited here, another one runs on a worker: neither holds up the loop."""
    if inspect.iscoroutinefunction(approver.decide):
        reply: Reply = await approver.decide(request)
        return reply
    value = await asyncio.wrap_future(pool.submit(approver.decide, request))
    return await value if inspect.isawaitable(value) else value

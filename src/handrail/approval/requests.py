"""Ask, and take the first answer: the approver's, or one that comes through the store. Approvers that need no dialog are here.

Everything ends in an Answer. Silence, failure and a timeout are a no, each with its reason. Answers of this
process arrive at once; one poll per event loop finds those of others, and holds no thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..base.loops import finish, on_database, on_worker, result_of
from ..base.workers import is_being_ended, is_interrupt
from ..errors import StoreError
from ..protocols import Answer, ApprovalRequest, Approver, Decision, Reply
from ..store.approvals import ApprovalStore, State, StoredRequest, new_id
from .display import MAX_CHARS, pieces, without_secrets
from .questions import bounded, fingerprint_of

if TYPE_CHECKING:
    from concurrent.futures import Future

log = logging.getLogger(__name__)

Keep = Callable[[ApprovalRequest, Answer], object]
Begin = Callable[[ApprovalRequest], Awaitable[object]]
NOBODY = "nobody"
_MAX_KEPT = 8 * MAX_CHARS


class ApprovalRequests:
    """Puts requests into a store and waits for the first answer."""

    def __init__(self, store: ApprovalStore) -> None:
        self._store = store
        self._inbox = Inbox(store)

    async def ask(
        self,
        request: ApprovalRequest,
        approver: Approver,
        keep: Keep | None = None,
        *,
        scopes: Sequence[str] = (),
        begin: Begin | None = None,
    ) -> tuple[ApprovalRequest, Answer]:
        """The request with its id, and its answer. `keep` is called with both, to be committed with the answer; not for a
        yes that holds always, about which more is to be done. `begin` is awaited once the request is stored. Raises StoreError,
        and Granted when one of the `scopes` has a grant."""
        fingerprint = request.fingerprint or fingerprint_of(request)
        request = request._replace(id=new_id(), fingerprint=fingerprint)
        elsewhere = self._inbox.expect(request.id)  # before it is stored: no answer comes in between
        try:
            stored = await self._stored(request, scopes)
            if stored.request.id != request.id:  # taken over from a process that has exited
                await self._inbox.forget(request.id)
                request = request._replace(id=stored.request.id, expires_at=stored.request.expires_at)
                elsewhere = self._inbox.expect(request.id)
                if await on_database(self._store.answered_among, [request.id]):
                    elsewhere.set_result(None)
            return request, await self._decided(request, approver, begin, elsewhere, keep)
        finally:
            await self._inbox.forget(request.id)

    async def _decided(
        self,
        request: ApprovalRequest,
        approver: Approver,
        begin: Begin | None,
        elsewhere: asyncio.Future[None],
        keep: Keep | None,
    ) -> Answer:
        local: asyncio.Future[Answer] | None = None
        try:
            if begin is not None:
                await begin(request)
            seconds = max(0.0, request.expires_at - time.time())
            if not elsewhere.done():
                local = asyncio.ensure_future(consult(approver, request))
                local.add_done_callback(lambda _: finish(elsewhere))
                timer = asyncio.get_running_loop().call_later(seconds, finish, elsewhere)
                try:
                    await elsewhere  # what is answered after this is found in the store
                finally:
                    timer.cancel()
            own = local.result() if local is not None and local.done() else None
            settled = partial(self._settled, seconds=seconds, keep=keep)
            return await result_of(self._store.database.write(settled, request, own), timeout=None, cancel=None)
        except BaseException as error:
            taken_back = self._store.database.write(self._store.withdraw, request.id)
            if not isinstance(error, GeneratorExit):
                with contextlib.suppress(StoreError):
                    await asyncio.shield(asyncio.wrap_future(taken_back))
            raise
        finally:
            if local is not None and not local.done():
                local.cancel()
                await asyncio.gather(local, return_exceptions=True)

    async def _stored(self, request: ApprovalRequest, scopes: Sequence[str]) -> StoredRequest:
        """A request that is stored while its caller is cancelled is taken back."""
        ask = partial(self._store.ask, kept(request), fingerprint=request.fingerprint, unless=scopes)
        storing = self._store.database.write(ask)
        try:
            return await result_of(storing, timeout=None, cancel=None)
        except asyncio.CancelledError:
            storing.add_done_callback(self._take_back)
            raise

    def _take_back(self, storing: Future[StoredRequest]) -> None:
        if not storing.cancelled() and storing.exception() is None:
            self._store.database.write(self._store.withdraw, storing.result().request.id)

    def _settled(self, request: ApprovalRequest, own: Answer | None, *, seconds: float, keep: Keep | None) -> Answer:
        answer = own if own is not None and self._store.answer(request.id, own, claims=True) is None else None
        if own is None:  # unless it has an answer
            self._store.withdraw(request.id, state=State.EXPIRED)
        # The first answer in the store decides, even if another came a moment later.
        answer = answer or self._store.claim(request.id)
        answer = answer or Answer(Decision.DENY, NOBODY, f"nobody answered within {seconds:.0f} s")
        answer = request.as_offered(answer)
        if keep is not None and answer.decision is not Decision.ALWAYS:
            keep(request, answer)
        return answer


async def consult(approver: Approver, request: ApprovalRequest) -> Answer:
    """One approver's answer. Never fails: anything but a yes is a no."""
    name = str(getattr(approver, "name", "") or type(approver).__name__)
    try:
        reply = await reply_of(approver, request)
    except BaseException as error:
        if is_interrupt(error) or is_being_ended(error):
            raise
        if isinstance(error, asyncio.CancelledError):
            return Answer(Decision.DENY, name, "asking was cancelled")
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
        self._waiting: dict[asyncio.AbstractEventLoop, dict[str, asyncio.Future[None]]] = {}
        self._polls: dict[asyncio.AbstractEventLoop, asyncio.Task[None]] = {}
        store.listen(self._arrived)

    def expect(self, request_id: str) -> asyncio.Future[None]:
        """Done when the request has an answer that comes from now on. Call `forget` in the end."""
        loop = asyncio.get_running_loop()
        answered = self._waiting.setdefault(loop, {})[request_id] = loop.create_future()
        if loop not in self._polls:
            self._polls[loop] = loop.create_task(self._poll(loop))
        return answered

    async def forget(self, request_id: str) -> None:
        loop = asyncio.get_running_loop()
        del self._waiting[loop][request_id]
        if not self._waiting[loop]:
            del self._waiting[loop]
            poll = self._polls.pop(loop)
            poll.cancel()
            await asyncio.wait({poll})

    async def _poll(self, loop: asyncio.AbstractEventLoop) -> None:
        seen = None
        while True:
            await asyncio.sleep(POLL_SECONDS)
            try:
                version = await on_database(self._store.database.version_of_data)
                if version != seen:
                    for request_id in await on_database(self._store.answered_among, list(self._waiting[loop])):
                        self._arrived(request_id)
                seen = version
            except StoreError as error:
                log.warning("the store cannot be polled for answers: %s", error)

    def _arrived(self, request_id: str) -> None:
        for loop, waiting in tuple(self._waiting.items()):
            if (future := waiting.get(request_id)) is not None and not future.done():
                with contextlib.suppress(RuntimeError):  # its loop was closed meanwhile
                    loop.call_soon_threadsafe(finish, future)


async def reply_of(approver: Approver, request: ApprovalRequest) -> Reply:
    """An async approver is awaited here, another one runs on a worker: neither holds up the loop."""
    if inspect.iscoroutinefunction(approver.decide):
        reply: Reply = await approver.decide(request)
        return reply
    value = await on_worker(approver.decide, request)
    return await value if inspect.isawaitable(value) else value


Send = Callable[[ApprovalRequest], Awaitable[Reply]]


class PolicyApprover:
    """Denies everything: for programs that run unattended. What they may do anyway is allowed in config.yaml beforehand."""

    name = "policy"

    def decide(self, request: ApprovalRequest) -> Answer:  # noqa: ARG002  an Approver's signature
        return Answer(Decision.DENY, self.name, "nobody is there to ask")


class QueueApprover:
    """Waits until the request is answered through the store (`handrail approvals answer`, another device) or expires."""

    name = "queue"

    async def decide(self, request: ApprovalRequest) -> Reply:  # noqa: ARG002  an Approver's signature
        never: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        return await never


class CallbackApprover:
    """Calls `send` with the request, to show it where the user is: a chat, a web page, a phone. `send` returns the answer, or
    None when the answer will come through `ApprovalStore.answer(request.id, ...)`: from a button, another process, after a
    restart."""

    def __init__(self, send: Send, *, name: str = "gateway") -> None:
        self.name = name
        self._send = send

    async def decide(self, request: ApprovalRequest) -> Reply:
        reply = await self._send(request)
        return await QueueApprover().decide(request) if reply is None else reply


class ChainApprover:
    """Asks one approver after the other: one that returns None, or fails, passes the request on. The last None is a no."""

    def __init__(self, *approvers: Approver) -> None:
        self._approvers = approvers

    async def decide(self, request: ApprovalRequest) -> Reply:
        for approver in self._approvers:
            name = str(getattr(approver, "name", "") or type(approver).__name__)
            try:
                reply = await reply_of(approver, request)
            except (Exception, SystemExit) as error:  # noqa: BLE001  an approver may be anybody's; the next one decides
                log.warning("the approver %s failed: %s: %s", name, type(error).__name__, error)
                continue
            if isinstance(reply, Decision):
                return Answer(reply, name)
            if isinstance(reply, Answer):
                return reply._replace(by=reply.by or name)
        return None

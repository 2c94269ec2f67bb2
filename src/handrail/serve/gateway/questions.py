"""Questions in chats: each is posted once, answered once, and edited when it is closed, whoever answered it and where."""

import asyncio
import logging
import time

from ...errors import HandrailError, SessionNotFound
from ...platforms.base import QUESTION_KEY, Message, Unreachable
from ...platforms.table import Account
from ...protocols import Answer, Decision
from ...store.approvals import StoredRequest
from ..event_bus import MISSED
from ..shared_state import Served
from . import texts
from .store import GatewayStore, Post, Where

log = logging.getLogger(__name__)
_RETRY_SECONDS = 2.0
_MAX_DEPTH = 10
# Nobody reads a question and writes an answer in less.
_READING_SECONDS = 1.0


class Questions:
    """Compares open questions with posted ones after every change, so that nothing is lost, whatever was down."""

    def __init__(self, served: Served, store: GatewayStore, accounts: dict[str, Account]) -> None:
        self._served, self._store, self._accounts = served, store, accounts
        self._refreshing = {name: asyncio.Lock() for name in accounts}
        self.yolo: set[Where] = set()

    async def run(self, account: str) -> None:
        """Runs until cancelled. One task per account: one that hangs does not delay another."""
        updates = self._served.bus.follow()
        batch = asyncio.ensure_future(anext(updates))
        try:
            while True:
                retry_at = time.monotonic() + (float("inf") if await self._try_refresh(account) else _RETRY_SECONDS)
                while (left := retry_at - time.monotonic()) > 0:
                    await asyncio.wait({batch}, timeout=None if left == float("inf") else left)
                    if not batch.done():
                        break
                    events, batch = batch.result(), asyncio.ensure_future(anext(updates))
                    if any(event.kind == MISSED or event.kind.startswith("approval.") for event in events):
                        break
        finally:
            batch.cancel()
            await asyncio.wait({batch})
            await updates.aclose()  # type: ignore[attr-defined]

    async def _try_refresh(self, account: str) -> bool:
        try:
            return await self.refresh(account)
        except HandrailError as error:
            log.warning("questions cannot be posted: %s; retrying", error)
        except Exception:
            log.exception("questions cannot be posted; retrying")
        return False

    async def refresh(self, account: str) -> bool:
        """Post and close what has changed. False if something could not be sent; the caller retries."""
        async with self._refreshing[account]:
            waiting = {stored.request.id: stored for stored in await asyncio.to_thread(self._served.approvals.pending)}
            posts = self._store.open_posts(account)
            done = [await self._end(post) for post in posts if post.request not in waiting]
            known = {(post.request, post.where) for post in posts}
            for stored in waiting.values():
                for where in self._places(stored):
                    if where.adapter == account and (stored.request.id, where) not in known:
                        done.append(await self._post(stored, where))
            return all(done)

    def _places(self, stored: StoredRequest) -> list[Where]:
        """The chat whose agent asks, or the home chats of all accounts for a question from elsewhere."""
        if (asker := self._chat_of(stored.request.session_id)) is not None:
            return [asker]
        return [Where(each.name, each.home) for each in self._accounts.values() if each.home]

    def _chat_of(self, session: str | None) -> Where | None:
        """The chat of a session; a child agent's is that of its parent."""
        for _ in range(_MAX_DEPTH):
            if session is None:
                return None
            if (where := self._store.chat_of(session)) is not None:
                return where
            try:
                session = self._served.sessions.get(session).parent
            except SessionNotFound:
                return None
        return None

    async def _post(self, stored: StoredRequest, where: Where) -> bool:
        request = stored.request
        if where in self.yolo:
            return self.answer(request.id, Answer(Decision.ONCE, f"{where.adapter}:yolo")) is None
        adapter = self._accounts[where.adapter].adapter
        text = texts.question(request, can_tap=adapter.can_edit, max_chars=adapter.max_chars)
        try:
            message = await adapter.send(where.chat, text, key=f"{QUESTION_KEY}{request.id}", offers=request.offers)
        except Unreachable as error:
            log.info("%s: %s", where.adapter, error)
            return False
        except HandrailError as error:
            log.warning("%s: a question cannot be posted to %s: %s", where.adapter, where.chat, error)
            message = ""  # a retry is pointless; the question is in the console
        self._store.add_post(Post(request.id, where, message))
        return True

    async def _end(self, post: Post) -> bool:
        if post.message:
            try:
                text = texts.over(self._served.approvals.get(post.request))
                adapter = self._accounts[post.where.adapter].adapter
                if adapter.can_edit:
                    await adapter.edit(post.where.chat, post.message, text)
                else:  # below the question, which stays as it is
                    await adapter.send(post.where.chat, text, key=f"over-{post.request}")
            except Unreachable as error:
                log.info("%s: %s", post.where.adapter, error)
                return False
            except HandrailError as error:
                log.warning("%s: a question cannot be edited: %s", post.where.adapter, error)
        self._store.end_post(post)
        return True

    def at(self, where: Where) -> list[StoredRequest]:
        """The open questions of this chat, the oldest first."""
        return [stored for stored in self._served.approvals.pending() if where in self._places(stored)]

    def meant(self, where: Where, message: Message) -> StoredRequest | None:
        """The question that a message answers although it names none: the one that it replies to, or the only one that this
        chat has seen lately, if it was there for long enough before the message was written. None if that is not clear."""
        open_here = {stored.request.id: stored for stored in self.at(where)}
        if message.question:
            return open_here.get(message.question)
        if self._accounts[where.adapter].adapter.needs_reply:
            return None
        quoted = self._store.request_at(where, message.reply_to) if message.reply_to else None
        if quoted is not None:
            return open_here.get(quoted)
        seen = self.seen(where, message)
        # Of the questions that the writer may have had before them, one has to be left, and none that has ended meanwhile.
        lately = [
            each for each in self._store.posted(where) if each in open_here or not self._was_answered_in(each, where)
        ]
        return seen[0] if len(seen) == len(lately) == 1 else None

    def seen(self, where: Where, message: Message) -> list[StoredRequest]:
        """The open questions that were in this chat before the message was written."""
        now = time.time()
        written = now if message.written_at is None else min(now, message.written_at)
        posted = self._store.posted(where)
        return [stored for stored in self.at(where) if posted.get(stored.request.id, now) <= written - _READING_SECONDS]

    def _was_answered_in(self, request_id: str, where: Where) -> bool:
        """Whether somebody in this chat ended it, and so knows that it has ended."""
        answer = self._served.approvals.get(request_id).answer
        return answer is not None and answer.by.startswith(f"{where.adapter}:")

    async def catch_up(self, where: Where, message: str) -> None:
        """Wait until what is being posted is stored: a user may answer a question before we know the id of its message."""
        if self._store.request_at(where, message) is None:
            async with self._refreshing[where.adapter]:
                pass

    async def pressed(self, where: Where, message: str, decision: Decision, user: str) -> str:
        """The reply to a button press; empty if the question's own message will show the outcome."""
        await self.catch_up(where, message)
        if (request_id := self._store.request_at(where, message)) is None:
            return ""
        stored = self._served.approvals.get(request_id)
        if decision not in stored.request.offers:
            return f"This question takes {', '.join(each.value for each in stored.request.offers)}."
        before = self.answer(request_id, Answer(decision, f"{where.adapter}:{user}"))
        return texts.too_late(before) if before is not None else ""

    def answer(self, request_id: str, answer: Answer) -> StoredRequest | None:
        """None if this answer counts, else the request as it was closed before."""
        return self._served.approvals.answer(request_id, answer)

"""Questions in chats: each put there once, answered once, and rewritten when it is over, whoever answered it and where."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from ...errors import HandrailError, SessionNotFound
from ...platforms.adapter import Unreachable
from ...protocols import Answer, Decision
from ..event_bus import MISSED
from . import texts
from .store import Post, Where

if TYPE_CHECKING:
    from ...platforms.adapter_table import Account
    from ...store.approvals import StoredRequest
    from ..shared_state import Served
    from .store import GatewayStore

log = logging.getLogger(__name__)

_RETRY_SECONDS = 2.0
_DEEPEST = 10


class Questions:
    """Compares what waits with what was put into chats, after every change: so nothing is lost, whatever was down."""

    def __init__(self, served: Served, store: GatewayStore, accounts: dict[str, Account]) -> None:
        self._served, self._store, self._accounts = served, store, accounts
        self._looking = {name: asyncio.Lock() for name in accounts}
        self.yolo: set[Where] = set()

    async def run(self, account: str) -> None:
        """Until cancelled. Each account by itself: one that hangs holds up no other."""
        following = self._served.bus.follow()
        news = asyncio.ensure_future(anext(following))
        try:
            while True:
                again_at = time.monotonic() + (float("inf") if await self._looked(account) else _RETRY_SECONDS)
                while (left := again_at - time.monotonic()) > 0:
                    await asyncio.wait({news}, timeout=None if left == float("inf") else left)
                    if not news.done():
                        break
                    events, news = news.result(), asyncio.ensure_future(anext(following))
                    if any(event.kind == MISSED or event.kind.startswith("approval.") for event in events):
                        break
        finally:
            news.cancel()
            await asyncio.wait({news})
            await following.aclose()  # type: ignore[attr-defined]

    async def _looked(self, account: str) -> bool:
        try:
            return await self.look(account)
        except HandrailError as error:
            log.warning("questions cannot be put into chats: %s; trying again", error)
        except Exception:
            log.exception("questions cannot be put into chats; trying again")
        return False

    async def look(self, account: str) -> bool:
        """Whether all was done that is to be done; what could not be sent is tried again."""
        async with self._looking[account]:
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
        """The chat whose agent asks, or the homes of all accounts for a question from elsewhere."""
        asker = self._chat_of(stored.request.session_id)
        if asker is not None:
            return [asker]
        return [Where(each.name, each.home) for each in self._accounts.values() if each.home]

    def _chat_of(self, session: str | None) -> Where | None:
        """A child agent's questions go to the chat of whom it works for."""
        for _ in range(_DEEPEST):
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
            message = await adapter.send(where.chat, text, key=f"ask-{request.id}", offers=request.offers)
        except Unreachable as error:
            log.info("%s: %s", where.adapter, error)
            return False
        except HandrailError as error:
            log.warning("%s: a question cannot be put into %s: %s", where.adapter, where.chat, error)
            message = ""  # trying again would be no use; it waits in the console
        self._store.add_post(Post(request.id, where, message))
        return True

    async def _end(self, post: Post) -> bool:
        if post.message:
            try:
                text = texts.over(self._served.approvals.get(post.request))
                await _put(self._accounts[post.where.adapter], post, text)
            except Unreachable as error:
                log.info("%s: %s", post.where.adapter, error)
                return False
            except HandrailError as error:
                log.warning("%s: a question cannot be rewritten: %s", post.where.adapter, error)
        self._store.end_post(post)
        return True

    def at(self, where: Where) -> list[StoredRequest]:
        """What waits in this chat, the oldest first."""
        return [stored for stored in self._served.approvals.pending() if where in self._places(stored)]

    async def tapped(self, where: Where, message: str, decision: Decision, person: str) -> str:
        """What to say to who tapped; nothing when the message itself will tell."""
        request_id = self._store.request_at(where, message)
        if request_id is None:
            async with self._looking[
                where.adapter
            ]:  # they may be faster than we are in writing down what we have just sent
                request_id = self._store.request_at(where, message)
        if request_id is None:
            return ""
        stored = self._served.approvals.get(request_id)
        if decision not in stored.request.offers:
            return f"This question takes {', '.join(each.value for each in stored.request.offers)}."
        before = self.answer(request_id, Answer(decision, f"{where.adapter}:{person}"))
        return texts.too_late(before) if before is not None else ""

    def answer(self, request_id: str, answer: Answer) -> StoredRequest | None:
        """None: it holds. Else what had happened before."""
        return self._served.approvals.answer(request_id, answer)


async def _put(account: Account, post: Post, text: str) -> None:
    """In place of the question, or below it where nothing can be edited."""
    if account.adapter.can_edit:
        await account.adapter.edit(post.where.chat, post.message, text)
    else:
        await account.adapter.send(post.where.chat, text, key=f"over-{post.request}")

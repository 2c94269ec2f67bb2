"""One chat: one agent session, one turn at a time. Messages that arrive during a turn are the next turn."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from ...agent.agent import Agent
from ...agent.events import TurnEnded
from ...errors import HandrailError, SessionNotFound
from ...platforms.table import Account
from ...plugins.api import ChatCommand
from ..shared_state import Served
from .store import GatewayStore, Where
from .turn_messages import TurnMessages

log = logging.getLogger(__name__)

BROKEN = "⚠️ Something broke here; see the server's log."
# For a platform without a toolset preset of its own.
_CORE_PRESET = "handrail-cli"
_MAX_WAITING = 50
_RESTARTED = (
    "[Not from the user] The program was restarted during your work. Check what is already done, and continue. "
    "The last message to you: "
)


class Chat:
    """Everything here runs on the server's loop. `reply` sends a text to the chat."""

    def __init__(
        self,
        served: Served,
        store: GatewayStore,
        account: Account,
        where: Where,
        *,
        reply: Callable[[Where, str], Awaitable[None]],
    ) -> None:
        self._served, self._store, self._account, self._reply = served, store, account, reply
        self.where = where
        self._waiting: list[str] = []
        self._current = ""
        self._previous: str | None = None  # the session before the one that the user started
        self._work: asyncio.Task[None] | None = None
        self._is_closing = False

    @property
    def session(self) -> str | None:
        return self._store.session_of(self.where)

    @property
    def needs_reply(self) -> bool:
        """Whether a question is only answered by a reply to it."""
        return self._account.adapter.needs_reply

    @property
    def is_busy(self) -> bool:
        return self._work is not None and not self._work.done()

    def tools(self) -> list[str]:
        return sorted(self._served.app.toolsets.select([self._toolset()]))

    @property
    def plugin_commands(self) -> Mapping[str, ChatCommand]:
        plugins = self._served.app.plugins
        return plugins.contributions.chat_commands if plugins else {}

    def _toolset(self) -> str:
        own = f"handrail-{self._account.kind}"
        return own if own in self._served.app.toolsets.names() else _CORE_PRESET

    def receive(self, text: str) -> bool:
        """Queue a message for the agent. False if too many are waiting already."""
        if len(self._waiting) >= _MAX_WAITING:
            return False
        self._waiting.append(text)
        self._save_unfinished()
        if not self.is_busy:
            self._work = asyncio.create_task(self._take_turns())
        return True

    def _save_unfinished(self) -> None:
        """So that it is resumed after a restart."""
        self._store.set_unfinished(self.where, "\n".join(filter(None, [self._current, *self._waiting])))

    def resume(self, text: str) -> None:
        """Continue after a restart during a turn for this text."""
        self.receive(f"{_RESTARTED}{text.rpartition(_RESTARTED)[2]}")

    async def _take_turns(self) -> None:
        while self._waiting and not self._is_closing:
            self._current, self._waiting = "\n".join(self._waiting), []
            try:
                await self._turn(self._current)
            except HandrailError as error:
                await self._reply(self.where, f"⚠️ {error}")
            except Exception:
                log.exception("a turn in %s failed", self.where)
                await self._reply(self.where, BROKEN)
            if not self._is_closing:
                self._current = ""
                self._save_unfinished()

    async def _turn(self, text: str) -> None:
        agent = await self._agent()
        async with TurnMessages(self._account, self.where.chat) as messages:
            async for event in self._served.turns.run(agent, text):
                if self._is_closing and isinstance(event, TurnEnded):
                    return
                await messages.receive(event)

    async def _agent(self) -> Agent:
        turns, kind, toolsets = self._served.turns, self._account.kind, (self._toolset(),)
        try:
            agent = await turns.agent(self.session, toolsets=toolsets, platform=kind)
        except SessionNotFound:  # it was deleted
            agent = await turns.agent(None, toolsets=toolsets, platform=kind)
        if agent.session_id != self.session:
            self._store.set_session(self.where, agent.session_id)
            previous, self._previous = self._previous, None
            if previous is not None:
                await asyncio.to_thread(agent.started_after, previous)
        return agent

    def stop(self) -> bool:
        """False if there is nothing to stop."""
        self._waiting.clear()
        session = self.session
        return session is not None and self._served.turns.stop(session)

    def start_new_session(self) -> None:
        self.stop()
        self._previous = self.session or self._previous
        self._store.set_session(self.where, None)

    async def close(self) -> None:
        """An unfinished turn continues after the restart."""
        self._is_closing = True
        if self._work is not None and self.is_busy:
            self._work.cancel()
            await asyncio.wait({self._work})

"""One chat: a session of an agent, one turn at a time. What is written meanwhile is the next turn."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from ...agent.events import TurnEnded
from ...errors import HandrailError, SessionNotFound
from .turn_messages import Telling

if TYPE_CHECKING:
    from ...agent.agent import Agent
    from ...platforms.adapter_table import Account
    from .gateway import Gateway
    from .store import Where

log = logging.getLogger(__name__)

_MAX_WAITING = 50
_RESTARTED = (
    "[Not from the person] The program was restarted in the middle of your work. Look at what is done already, and go on. "
    "The last that was said to you: "
)


class Chat:
    """All of it happens in the server's loop."""

    def __init__(self, gateway: Gateway, account: Account, where: Where) -> None:
        self._gateway, self._account, self.where = gateway, account, where
        self._waiting: list[str] = []
        self._current = ""
        self._before: str | None = None  # the session that the person left to begin anew
        self._work: asyncio.Task[None] | None = None
        self._is_closing = False

    @property
    def session(self) -> str | None:
        return self._gateway.store.session_of(self.where)

    @property
    def is_busy(self) -> bool:
        return self._work is not None and not self._work.done()

    def hear(self, text: str) -> bool:
        """Somebody says something to the agent. False when too much waits already."""
        if len(self._waiting) >= _MAX_WAITING:
            return False
        self._waiting.append(text)
        self._note()
        if not self.is_busy:
            self._work = asyncio.create_task(self._take_turns())
        return True

    def _note(self) -> None:
        """What is not done yet is known after a restart."""
        self._gateway.store.set_unfinished(self.where, "\n".join(filter(None, [self._current, *self._waiting])))

    def go_on(self, text: str) -> None:
        """After a restart in the middle of a turn that was about this."""
        self.hear(f"{_RESTARTED}{text.rpartition(_RESTARTED)[2]}")

    async def _take_turns(self) -> None:
        while self._waiting and not self._is_closing:
            self._current, self._waiting = "\n".join(self._waiting), []
            try:
                await self._turn(self._current)
            except HandrailError as error:
                await self._gateway.say(self.where, f"⚠️ {error}")
            except Exception:
                log.exception("a turn in %s failed", self.where)
                await self._gateway.say(self.where, "⚠️ Something broke here; the server's log says what.")
            if not self._is_closing:
                self._current = ""
                self._note()

    async def _turn(self, said: str) -> None:
        agent = await self._agent()
        async with Telling(self._account, self.where.chat) as telling:
            async for event in self._gateway.served.turns.run(agent, said):
                if self._is_closing and isinstance(event, TurnEnded):
                    return
                await telling.hear(event)

    async def _agent(self) -> Agent:
        turns, kind = self._gateway.served.turns, self._account.kind
        toolsets = (f"handrail-{kind}",)
        try:
            agent = await turns.agent(self.session, toolsets=toolsets, platform=kind)
        except SessionNotFound:  # somebody has deleted it
            agent = await turns.agent(None, toolsets=toolsets, platform=kind)
        if agent.session_id != self.session:
            self._gateway.store.set_session(self.where, agent.session_id)
            before, self._before = self._before, None
            if before is not None:
                await asyncio.to_thread(agent.started_after, before)
        return agent

    def stop(self) -> bool:
        """False when there is nothing to stop."""
        self._waiting.clear()
        session = self.session
        return session is not None and self._gateway.served.turns.stop(session)

    def begin_anew(self) -> None:
        self.stop()
        self._before = self.session or self._before
        self._gateway.store.set_session(self.where, None)

    async def close(self) -> None:
        """What it works on goes on after the restart."""
        self._is_closing = True
        if self._work is not None and self.is_busy:
            self._work.cancel()
            await asyncio.wait({self._work})

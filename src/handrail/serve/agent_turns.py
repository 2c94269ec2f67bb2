"""The agents of this server: one per session, one turn at a time. Their events are published on the bus."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from ..agent.agent import Agent
from ..agent.agent_factory import open_agent
from ..agent.events import End, Event, MessageEnded, Notice, TextDelta, TurnEnded, payload_of
from ..app import Handrail
from ..errors import HandrailError
from ..store.sessions import SessionStore
from ..types import JsonDict
from .event_bus import Bus

log = logging.getLogger(__name__)
MAX_AGENTS = 200


class SessionBusy(HandrailError):
    """The session is in the middle of a turn."""


class Turns:
    """Opens agents and keeps them while they are used. Everything here runs on the server's loop."""

    def __init__(self, app: Handrail, sessions: SessionStore, bus: Bus) -> None:
        self._app, self._sessions, self._bus = app, sessions, bus
        self._agents: dict[str, Agent] = {}
        self._running: dict[str, asyncio.Task[TurnEnded]] = {}
        self.written: dict[str, list[str]] = {}  # the pieces of the message that each running session writes now

    async def agent(
        self,
        session: str | None = None,
        *,
        model: str | None = None,
        toolsets: Sequence[str] | None = None,
        platform: str = "api",
    ) -> Agent:
        """The agent of a session, or of a new one. Raises SessionNotFound, and ModelError if there is no model."""
        if (known := self._agents.get(session or "")) is not None:
            return known
        options: Any = {"model": model, "toolsets": toolsets, "platform": platform}
        agent = await asyncio.to_thread(open_agent, self._app, resume=session, store=self._sessions, **options)
        idle = [each for each in self._agents if each not in self._running]
        for each in idle[: max(0, len(self._agents) - MAX_AGENTS + 1)]:
            await asyncio.to_thread(self._agents.pop(each).close)
        return self._agents.setdefault(agent.session_id, agent)

    async def run(self, agent: Agent, text: str | list[JsonDict], *, detached: bool = False) -> AsyncIterator[Event]:
        """One turn. Raises SessionBusy. If the consumer stops, the turn is interrupted, unless it is detached."""
        if agent.session_id in self._running:
            raise SessionBusy(f"the session {agent.session_id} is in the middle of a turn; stop it, or wait")
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        loop, written = asyncio.get_running_loop(), self.written.setdefault(agent.session_id, [])

        def publish(event: Event) -> None:
            if isinstance(event, TextDelta):
                written.append(event.text)
            elif isinstance(event, MessageEnded):
                written.clear()
            if not isinstance(event, TextDelta | TurnEnded):
                self._bus.publish(f"agent.{type(event).__name__}", session=agent.session_id, **payload_of(event))
            if not isinstance(event, TurnEnded):
                loop.call_soon_threadsafe(events.put_nowait, event)

        work = self._running[agent.session_id] = asyncio.ensure_future(_turn(agent, text, publish))
        work.add_done_callback(lambda work: self._ended(agent.session_id, work))
        work.add_done_callback(lambda _: events.put_nowait(None))  # after all that it published
        try:
            while (event := await events.get()) is not None:
                yield event
            yield work.result()
        finally:
            if not work.done() and not detached:
                agent.interrupt("the client disconnected")
                await asyncio.wait({work})

    def _ended(self, session: str, work: asyncio.Task[TurnEnded]) -> None:
        del self._running[session], self.written[session]
        if work.cancelled():
            return
        if error := work.exception():
            log.warning("a turn of %s failed: %s", session, error)
        else:
            self._bus.publish("turn.ended", session=session, **payload_of(work.result()))

    def stop(self, session: str) -> bool:
        """Interrupt the turn of a session. False if there is none."""
        if session not in self._running:
            return False
        self._agents[session].interrupt("stopped by operator")
        return True

    def steer(self, session: str, text: str) -> bool:
        """Say something to an agent that works: it hears it before its next step. False if there is no turn."""
        if session in self._running:
            self._agents[session].steer(text)
        return session in self._running

    def is_running(self, session: str) -> bool:
        return session in self._running

    async def close(self) -> None:
        for agent in self._agents.values():
            await asyncio.to_thread(agent.close)
        if self._running:
            await asyncio.wait(set(self._running.values()), timeout=5)


async def _turn(agent: Agent, text: str | list[JsonDict], publish: Callable[[Event], object]) -> TurnEnded:
    """One turn, and another for what was said too late to be heard in it."""
    ended = await agent.arun(text, publish)
    while said := agent.take_unheard():
        if ended.end is not End.ANSWERED:  # it was said for another course of things
            publish(Notice(f"It did not hear this any more: {'; '.join(said)}"))
            break
        ended = await agent.arun("\n\n".join(said), publish)
    return ended

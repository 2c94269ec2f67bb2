"""Everything that the server's parts share: one runtime, the stores, who watches, and the agents that run here."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from functools import cached_property
from typing import TYPE_CHECKING

from ..config.paths import state_dir
from .event_bus import Bus
from .live_calls import LiveCalls
from .pending_requests import ServedApprover, WaitingRequests
from .tokens import STORE_NAME, Keys

if TYPE_CHECKING:
    from ..app import Handrail
    from ..store.approvals import ApprovalStore
    from ..store.sessions import SessionStore
    from .agent_turns import Turns


class Served:
    """What one `handrail serve` serves. `run` keeps it going."""

    def __init__(self, here: Handrail, *, token: str = "") -> None:
        self.here = here
        self.started = time.time()
        self.bus = Bus()
        self.keys = Keys(state_dir() / STORE_NAME, token=token)
        self.live = LiveCalls(self.bus)
        self.requests = WaitingRequests(self.approvals, self.bus)
        here.runtime.approver = ServedApprover(self.requests)
        here.runtime.person = None

    @property
    def approvals(self) -> ApprovalStore:
        return self.here.gate.store

    @cached_property
    def sessions(self) -> SessionStore:
        from ..agent.agent_factory import open_store

        return open_store()

    @cached_property
    def turns(self) -> Turns:
        from .agent_turns import Turns

        return Turns(self)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While this is open, what happens is told."""
        self.bus.attach()
        self.live.attach(self.here.runtime.hooks)
        watching = asyncio.create_task(self.requests.run())
        forget = self.here.processes.on_notice(lambda notice: self.bus.publish("process.notice", text=str(notice)))
        try:
            yield
        finally:
            forget()
            watching.cancel()
            await asyncio.wait({watching})
            if "turns" in self.__dict__:
                await self.turns.close()
            self.live.detach(self.here.runtime.hooks)
            if "sessions" in self.__dict__:
                self.sessions.close()
            self.keys.close()

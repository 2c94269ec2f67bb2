"""What the server's parts share: one app, the stores, the event bus, and the agents of this server."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from functools import cached_property

from ..agent.agent_factory import open_store
from ..app import Handrail
from ..approval.gate import HISTORY_NAME
from ..config.paths import state_dir
from ..store.approvals import ApprovalStore
from ..store.sessions import SessionStore
from .agent_turns import Turns
from .event_bus import Bus
from .live_calls import LiveCalls, SharedCalls
from .pending_requests import ServedApprover, WaitingRequests
from .tokens import STORE_NAME, Keys


class Served:
    """The state of one `handrail serve`. It works while `running` is open."""

    def __init__(self, app: Handrail, *, token: str = "", links_of: Keys | None = None) -> None:
        """`token` is one more token. `links_of` are the keys of the server before a reload, whose login links stay valid."""
        self.app = app
        self.started = time.time()
        self.bus = Bus()
        self.keys = Keys(state_dir() / STORE_NAME, token=token, links_of=links_of)
        self.live = LiveCalls(self.bus)
        self.requests = WaitingRequests(self.approvals, self.bus)
        app.runtime.approver = ServedApprover(self.requests, self.live)
        app.runtime.person = None
        app.runtime.path.isolates = True

    @property
    def approvals(self) -> ApprovalStore:
        return self.app.gate.store

    @cached_property
    def sessions(self) -> SessionStore:
        return open_store()

    @cached_property
    def shared(self) -> SharedCalls:
        return SharedCalls(self.live, self.bus, self.sessions, self.approvals, state_dir() / HISTORY_NAME)

    @cached_property
    def turns(self) -> Turns:
        return Turns(self.app, self.sessions, self.bus)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While this is open, events are published."""
        self.bus.attach()
        self.live.attach(self.app.runtime.hooks)
        watching = {asyncio.create_task(self.requests.run()), asyncio.create_task(self.shared.run())}
        forget = self.app.processes.on_notice(lambda notice: self.bus.publish("process.notice", text=str(notice)))
        try:
            yield
        finally:
            forget()
            for each in watching:
                each.cancel()
            await asyncio.wait(watching)
            if "turns" in self.__dict__:
                await self.turns.close()
            self.live.detach(self.app.runtime.hooks)
            if "sessions" in self.__dict__:
                self.sessions.close()
            self.keys.close()

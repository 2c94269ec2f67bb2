"""What the server's parts share: one app, the stores, the event bus, the open questions, and the agents of this server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator
from functools import cached_property
from pathlib import Path

from ..agent.agent_factory import open_store
from ..app import Handrail
from ..approval.approvers.prompt import covered_by
from ..approval.display import pieces, visible
from ..approval.questions import has_excerpt, preview_of
from ..config.paths import state_dir
from ..errors import StoreError
from ..protocols import ApprovalRequest, Reply
from ..runtime.call_reports import REPORTS
from ..store.approvals import ApprovalStore, State, StoredRequest
from ..store.sessions import SessionStore
from ..types import JsonDict
from .agent_turns import Turns
from .event_bus import Bus
from .live_calls import LiveCalls, SharedCalls
from .tokens import STORE_NAME, Keys

log = logging.getLogger(__name__)
_POLL_SECONDS = 0.25
_KEEP_POLLING_SECONDS = 5.0
_SHOWN = ("id", "tool", "rule_key", "asker", "reason", "cwd", "environment", "expires_at")  # of a request, as they are
CONSOLE = Path(__file__).parent / "console"  # the built web console


class ServedApprover:
    """Leaves the question in the store for the console, chats and the command line. It never answers itself."""

    name = "serve"

    def __init__(self, watch: WaitingRequests, live: LiveCalls) -> None:
        self._watch, self._live = watch, live

    async def decide(self, request: ApprovalRequest) -> Reply:
        self._watch.poll_soon(request.id)
        who = request.tool, request.task_id, request.session_id
        self._live.hooks.asked(*who)
        never: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        try:
            return await never
        finally:
            self._live.hooks.asked(*who, is_over=True)
            self._watch.poll_soon()  # answered, timed out or cancelled: the store only reports answers


class WaitingRequests:
    """Open approval questions, whichever process asks or answers: publishes `approval.asked` and `approval.over`, each once per
    request."""

    def __init__(self, store: ApprovalStore, bus: Bus) -> None:
        self._store, self._bus = store, bus
        self._known: dict[str, StoredRequest] = {}
        self._poll_until = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._poll_now: asyncio.Event | None = None

    def poll_soon(self, _: str = "") -> None:
        """From any thread: something may have changed."""
        # A write may not be visible at the first poll, and our own writes do not change the version.
        self._poll_until = time.monotonic() + _KEEP_POLLING_SECONDS
        if self._loop is not None and self._poll_now is not None:
            try:
                self._loop.call_soon_threadsafe(self._poll_now.set)
            except RuntimeError:
                log.debug("the loop is closed")

    async def run(self) -> None:
        """Runs until cancelled."""
        self._loop, self._poll_now = asyncio.get_running_loop(), asyncio.Event()
        forget = self._store.listen(self.poll_soon)
        seen = -1
        try:
            while True:
                try:
                    version, now = self._store.database.version_of_data(), time.time()
                    has_expired = any(stored.request.expires_at <= now for stored in self._known.values())
                    if version != seen or time.monotonic() < self._poll_until or has_expired:
                        self._poll_now.clear()
                        self.poll()
                    seen = version
                except StoreError as error:
                    log.warning("questions cannot be read: %s", error)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._poll_now.wait(), _POLL_SECONDS)
        finally:
            forget()

    def poll(self) -> None:
        """Publish what is new and what is closed."""
        now = {stored.request.id: stored for stored in self._store.pending()}
        for request_id in self._known.keys() - now.keys():
            try:
                view = request_view(self._store.get(request_id))
            except LookupError:
                view = {**request_view(self._known[request_id]), "state": State.EXPIRED.value}
            self._bus.publish("approval.over", **view)
        for request_id in now.keys() - self._known.keys():
            self._bus.publish("approval.asked", **request_view(now[request_id]))
        self._known = now


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
        return SharedCalls(self.live, self.bus, self.sessions, self.approvals, state_dir())

    @cached_property
    def turns(self) -> Turns:
        return Turns(self.app, self.sessions, self.bus)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While this is open, events are published."""
        self.bus.attach()
        self.app.runtime.before_call = None  # its calls are reported here, not to other servers
        self.live.hooks.attach(self.app.runtime.hooks)
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
            self.app.runtime.hooks.unregister_plugin(REPORTS)
            if "sessions" in self.__dict__:
                self.sessions.close()
            self.keys.close()


def request_view(stored: StoredRequest) -> JsonDict:
    """For clients. The command is in escape-safe pieces, with the dangerous ones marked."""
    request, answer, lines = stored.request, stored.answer, preview_of(stored.request)
    spans = [(each.start, each.end) for each in request.concerns]
    # What would be written, line by line; `is_excerpt`: `pieces` shows parts of the same text.
    shown = [{"kind": line.kind.value, "pieces": [piece._asdict() for piece in line.pieces]} for line in lines]
    return {
        **{name: getattr(request, name) for name in _SHOWN},
        "state": stored.state.value,
        "kind": request.kind.value,
        "pieces": [piece._asdict() for piece in pieces(request.text, spans)],
        "preview": {"lines": shown, "is_excerpt": has_excerpt(request)} if shown else None,
        "editable": request.text if request.editable else None,
        "session": request.session_id,
        "task": request.task_id,
        "concerns": [{"rule": each.rule, "why": each.why, "covers": each.covers} for each in request.concerns],
        "offers": [{"decision": each.value, "covers": covered_by(request, each)} for each in request.offers],
        "asked_at": stored.created,
        "is_waiting": stored.is_waiting,
        "decision": (answer.decision.value if not answer.edited else "edit") if answer else None,
        "by": answer.by if answer else None,
        "why": (f"changed to: {visible(answer.edited)}" if answer.edited else answer.why) if answer else None,
        "answered_at": stored.answered,
    }

"""One server: connected in the background, reconnected when it is lost, and called."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from enum import Enum
from functools import partial
from importlib.metadata import version
from typing import Any, NamedTuple, TypeVar

from ..base.safe_text import safe_error
from ..errors import CallTimeout, ConfigError, ToolError, ToolFailed, ToolUnavailable
from ..settings.services import McpServerConfig
from .diagnosis import connect_problem, explained
from .http import Watch, WhyDenied, http_transport
from .oauth import LOGIN_SECONDS, Browse, Logins
from .sdk import exceptions, mcp, mcp_types, revisions
from .server_config import Server, expanded
from .server_requests import ServerRequests
from .stdio import Launch, Process, Watchdog, stdio_transport
from .tool_listing import Offer, changes, list_offer

log = logging.getLogger(__name__)

T = TypeVar("T")

FIRST_PAUSE_SECONDS = 0.25
MAX_PAUSE_SECONDS = 60.0
# After this many transport faults in a row, calls fail immediately instead of waiting for the next attempt.
MAX_FAULTS = 4
# How the SDK reports a closed connection, or an answer that was cut off. Servers use the code for their own errors.
_CLOSED, _CLOSED_TEXTS = -32000, ("Connection closed", "SSE stream ended", "SSE stream failed")
# What servers on the SDK say in a revision of the protocol in which they cannot ask during a call.
_CANNOT_ASK = "server-initiated request"
_POLL_SECONDS = 0.02
# The list of a server that reports changes without end is read this often.
RELIST_SECONDS = 0.5
# How long a call that goes on at the server as a task waits for the next connection.
RESUME_SECONDS = 60.0


class State(Enum):
    NEW = "new"
    CONNECTING = "connecting"
    READY = "ready"
    PARKED = "parked"  # its process was stopped because it was idle; the next call starts it
    FAILED = "failed"  # waiting for the next attempt
    CLOSED = "closed"


class Status(NamedTuple):
    state: State
    error: str
    protocol: str
    tools: int
    pid: int | None = None  # of a process that we started
    in_flight: int = 0
    faults: int = 0  # in a row


class Surroundings(NamedTuple):
    """What all connections of a process share."""

    watchdog: Watchdog
    requests: ServerRequests
    publish: Callable[[Server, Offer], Awaitable[None]]
    browse: Browse | None
    launch: Launch | None
    why_denied: WhyDenied


class Connection:
    """Lives on the loop that runs `run`. Its methods are called there, except `status`."""

    def __init__(self, server: Server, around: Surroundings) -> None:
        self.server, self._around = server, around
        self.state = State.NEW
        self.error = self.protocol = ""
        self.offer = Offer()
        self._falls_back = False
        self._no_login = ""
        self._rejected = ""  # why an answer was rejected
        self._answer = ""  # how a server at an address answered last
        self._client: mcp.Client | None = None
        self._process: Process | None = None
        self._changed = asyncio.Event()  # replaced at every change of state
        self._lost = asyncio.Event()  # the current connection is unusable
        self._wanted = asyncio.Event()  # a call waits for a connection
        self._relist = asyncio.Event()
        self._closing = asyncio.Event()
        self._connecting: asyncio.Timeout | None = None
        self._faults = 0
        self._retry_at = 0.0
        self._in_flight = 0
        self._last_used = time.monotonic()

    def status(self) -> Status:
        pid = self._process.child.pid if self._process is not None else None
        is_noisy = self.state is State.CONNECTING and self._process is not None and self._process.noise
        error = explained("it has not answered yet", self._process) if is_noisy else self.error
        return Status(self.state, error, self.protocol, len(self.offer.tools), pid, self._in_flight, self._faults)

    async def run(self) -> None:
        """Keep the server connected until `close`."""
        try:
            while not self._closing.is_set():
                await self._once()
                if self.state is State.PARKED:
                    await _first_of(self._wanted, self._closing)
                else:
                    await self._pause()
        finally:
            self._client = None
            self._set(State.CLOSED)

    def close(self) -> None:
        """Start to close. The task is not cancelled, as that would interrupt its clean-up."""
        self._closing.set()
        if self._connecting is not None:
            with contextlib.suppress(RuntimeError):  # it has failed or timed out, and is cleaned up now
                self._connecting.reschedule(0)

    async def _once(self) -> None:
        """One connection, from start to end."""
        self._lost, self._wanted = asyncio.Event(), asyncio.Event()
        self._no_login = self._rejected = ""
        self._set(State.CONNECTING)
        try:
            async with contextlib.AsyncExitStack() as stack:
                # A user who logs in needs longer than a server.
                seconds = self.server.settings.connect_timeout + (LOGIN_SECONDS if self._around.browse else 0)
                async with asyncio.timeout(seconds) as self._connecting:
                    client = await stack.enter_async_context(self._opened())
                    self.offer = await list_offer(client, self.server.settings)
                    await self._around.publish(self.server, self.offer)
                self._connecting = None
                self._client, self.protocol, self.error, self._faults = client, client.protocol_version, "", 0
                self._last_used = time.monotonic()
                self._set(State.READY)
                parked = await self._stay(client)
            self._client = None
            if parked:
                self._set(State.PARKED)
            else:
                self._fail(self._why_lost())
        except Exception as error:  # noqa: BLE001  a server may fail to connect in any way, and the others go on
            self._client = None
            self._fail(self._explained(error))
        finally:
            self._connecting = None

    @contextlib.asynccontextmanager
    async def _opened(self) -> AsyncIterator[mcp.Client]:
        from .tasks import TaskExtension  # imports the SDK

        settings = expanded(self.server.settings)
        callbacks = self._around.requests.callbacks(self.server.name, settings)
        client = mcp.Client(
            self._transport(settings),
            mode="legacy" if settings.protocol == "handshake" or self._falls_back else "auto",
            message_handler=self._on_message,
            client_info=mcp_types.Implementation(name="handrail", version=version("handrail")),
            cache=None,
            extensions=[TaskExtension(callbacks, self._reconnected)],
            **callbacks,
        )
        async with client:
            yield client

    def _transport(self, settings: McpServerConfig) -> Any:
        """Its problems are noted: the SDK reports them as a lost connection, a missing answer or an error without a name."""
        if self.server.way == "stdio":
            return stdio_transport(
                settings,
                watchdog=self._around.watchdog,
                started=partial(setattr, self, "_process"),
                ended=lambda: self._lost.set(),
                launch=self._around.launch,
            )
        logins = Logins(self._around.browse, partial(setattr, self, "_no_login"))
        watch = Watch(partial(setattr, self, "_rejected"), partial(setattr, self, "_answer"), self._around.why_denied)
        return http_transport(self.server, settings, logins, watch)

    async def _stay(self, client: mcp.Client) -> bool:
        """Wait until the connection is lost, or has been idle for too long: then True."""
        listening = asyncio.ensure_future(self._listen(client))
        try:
            while not self._lost.is_set() and not self._closing.is_set():
                left = self._until_idle()
                await _first_of(self._lost, self._relist, self._closing, timeout=left and max(0.01, left))
                if self._relist.is_set() and not self._lost.is_set():
                    self._relist.clear()
                    await self._refresh_list(client)
                    await _first_of(self._lost, self._closing, timeout=RELIST_SECONDS)
                if (left := self._until_idle()) is not None and left <= 0:
                    self._client = None
                    return True
            return False
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _refresh_list(self, client: mcp.Client) -> None:
        try:
            async with asyncio.timeout(self.server.settings.connect_timeout):
                self.offer = await list_offer(client, self.server.settings)
                await self._around.publish(self.server, self.offer)
        except Exception as error:  # noqa: BLE001  the previous list stays valid
            log.warning("the new tool list of MCP server %s cannot be read: %s", self.server.name, self._text(error))

    async def _listen(self, client: mcp.Client) -> None:
        with contextlib.suppress(Exception):  # a server need not offer it
            async for _ in changes(client):
                self._relist.set()

    async def _on_message(self, message: Any) -> None:
        """Notifications of the server, and lines that are not messages."""
        if getattr(message, "method", "").endswith("/list_changed"):
            self._relist.set()

    def _until_idle(self) -> float | None:
        limit = self.server.settings.idle_seconds if self.server.way == "stdio" else 0
        used = time.monotonic() if self._in_flight else self._last_used
        return used + limit - time.monotonic() if limit else None

    async def _pause(self) -> None:
        """Back off with jitter. A waiting call ends the pause early, unless there were many faults."""
        pause = min(MAX_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(self._faults, 12)) * random.uniform(0.5, 1)
        self._retry_at = time.monotonic() + pause
        if self._faults >= MAX_FAULTS:
            await _first_of(self._closing, timeout=pause)
        else:
            await _first_of(self._closing, self._wanted, timeout=pause)

    async def use(self, work: Callable[[mcp.Client], Awaitable[T]]) -> T:
        """Do something with the server, once: nothing is sent again to one that died, unless it says that it knows nothing."""
        limit = self.server.settings.timeout
        self._in_flight += 1
        try:
            async with asyncio.timeout(limit) as scope:
                client = await self._ready()
                cannot_ask = _CANNOT_ASK if client.protocol_version in revisions.MODERN_PROTOCOL_VERSIONS else None
                try:
                    return await work(client)
                except (exceptions.MCPError, ToolFailed) as error:
                    if self._is_forgotten(error):
                        self._lost.set()
                    elif cannot_ask is not None and cannot_ask in str(error).lower():
                        await self._fall_back()
                    else:
                        raise
                    return await work(await self._ready())
        except TimeoutError:
            if not scope.expired():
                raise
            raise CallTimeout(f"MCP server {self.server.name} did not answer within {limit:g} s") from None
        except ToolError:
            raise
        except Exception as error:  # noqa: BLE001  the SDK fails in many ways; the caller gets one of ours
            raise self._failure(error) from None
        finally:
            self._in_flight -= 1
            self._last_used = time.monotonic()

    async def _fall_back(self) -> None:
        """Reconnect by the handshake, in which a server can ask during a call, as soon as no other call would be lost."""
        self._in_flight -= 1
        try:
            while self._in_flight and not self._falls_back:  # noqa: ASYNC110  every call that ends changes it
                await asyncio.sleep(_POLL_SECONDS)
        finally:
            self._in_flight += 1
        if not self._falls_back:
            self._falls_back = True
            log.info("MCP server %s asks in the older way: connecting by the handshake", self.server.name)
            self._lost.set()

    async def _ready(self, *, patient: bool = False) -> mcp.Client:
        """The client of this connection or the next. Raises ToolUnavailable after many faults, unless `patient`."""
        while True:
            if self._client is not None and self._process is not None and self._process.has_died():
                self._lost.set()  # its output closes a moment later
            if self._client is not None and not self._lost.is_set():
                return self._client
            if self.state is State.CLOSED:
                raise ToolUnavailable(f"MCP server {self.server.name} is closed")
            if self.state is State.FAILED and self._faults >= MAX_FAULTS and not patient:
                seconds = max(0.0, self._retry_at - time.monotonic())
                why = f"is unavailable: {self.error}; next attempt in {seconds:.0f} s"
                raise ToolUnavailable(f"MCP server {self.server.name} {why}", retry_after_seconds=round(seconds, 1))
            self._wanted.set()
            await self._changed.wait()

    async def _reconnected(self, session: Any, error: Exception) -> Any:
        """The session after the one that failed, for a call that goes on at the server. Raises `error` if it is not lost."""
        if self._rejected or not (_is_loss(error) or self._is_forgotten(error)):
            raise error
        if self._client is not None and self._client.session is session:  # else another call has noticed it before
            self._lost.set()
        try:
            async with asyncio.timeout(RESUME_SECONDS):
                return (await self._ready(patient=True)).session
        except (ToolUnavailable, TimeoutError):
            raise self._lost_in_call(error) from None

    def _is_forgotten(self, error: Exception) -> bool:
        """Whether the server does not know the session, as after its restart: it has not looked at the request then."""
        has_sessions = self.protocol not in revisions.MODERN_PROTOCOL_VERSIONS
        return has_sessions and isinstance(error, exceptions.MCPError) and self._answer.startswith("404")

    def _failure(self, error: Exception) -> ToolError:
        """The error of a call. An error answer is the tool's own; only a lost connection is a fault."""
        if self._rejected:
            why, self._rejected = self._rejected, ""
            return ToolFailed(f"MCP server {self.server.name}: {why}")
        if not _is_loss(error):
            code = {"code": error.code} if isinstance(error, exceptions.MCPError) else {}
            return ToolFailed(f"MCP server {self.server.name}: {self._text(error)}", **code)
        self._lost.set()
        if self._no_login:
            return ToolUnavailable(f"MCP server {self.server.name}: {self._no_login}")
        return self._lost_in_call(error)

    def _lost_in_call(self, error: Exception) -> ToolFailed:
        how = f"was lost during the call ({self._why_lost() or self._text(error)})"
        doubt = "it is unknown whether the call took effect"
        return ToolFailed(f"MCP server {self.server.name} {how}; {doubt}", lost=True)

    async def settled(self) -> None:
        """Wait until it is ready, or the first attempt has failed."""
        while self.state in (State.NEW, State.CONNECTING):
            await self._changed.wait()

    def _set(self, state: State) -> None:
        self.state = state
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _fail(self, why: str) -> None:
        self._faults += 1
        self.error = safe_error(why)
        log.info("MCP server %s: %s", self.server.name, self.error)
        self._set(State.FAILED)

    def _why_lost(self) -> str:
        process = self._process
        if process is None:
            return self._no_login or "the connection was lost"
        code = process.child.returncode
        how = process.why or (f"it ended with code {code}" if code is not None else "it closed its output")
        return explained(how, process)

    def _explained(self, error: Exception) -> str:
        if known := self._no_login or self._rejected:
            return known
        if isinstance(first := _first(error), ConfigError | ToolError):
            return str(first)
        process = self._process
        if process is not None and process.is_lost:
            return self._why_lost()
        late = f"it did not answer within {self.server.settings.connect_timeout:g} s"
        return explained(late if isinstance(error, TimeoutError) else self._text(error), process)

    def _text(self, error: Exception) -> str:
        first = _first(error)
        return connect_problem(first, self.server, self._answer) or str(first) or type(first).__name__


async def _first_of(*events: asyncio.Event, timeout: float | None = None) -> None:  # noqa: ASYNC109  reaching the limit is not an error
    waiters = [asyncio.ensure_future(each.wait()) for each in events]
    try:
        await asyncio.wait(waiters, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for waiter in waiters:
            waiter.cancel()


def _first(error: BaseException) -> BaseException:
    """The first error of a group: the SDK wraps an error in one group per task."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _is_loss(error: Exception) -> bool:
    """Whether it tells of a lost connection. Anything else is an answer, even one that breaks the protocol or its own schema."""
    if isinstance(error, exceptions.MCPError):
        return error.code == _CLOSED and error.message.startswith(_CLOSED_TEXTS)
    return not isinstance(error, ValueError | RuntimeError | ToolError)

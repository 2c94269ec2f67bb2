"""One server: connected in the background, connected again when it is lost, and called."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ..base.safe_text import safe_error
from ..errors import CallTimeout, ConfigError, ToolError, ToolFailed, ToolUnavailable
from .list_changes import changes
from .oauth import LOGIN_SECONDS, Browse, Logins
from .server_config import Server, expanded
from .tool_listing import Offer, list_offer

if TYPE_CHECKING:
    from mcp import Client

    from ..settings.services import McpServerConfig
    from .server_requests import Asking
    from .stdio import Process
    from .watchdog import Watchdog

log = logging.getLogger(__name__)

T = TypeVar("T")

FIRST_PAUSE_SECONDS = 0.25
MAX_PAUSE_SECONDS = 60.0
# So many transport faults in a row, and calls fail at once instead of waiting for the next attempt.
MAX_FAULTS = 4
# How the session tells that the talk is over. Servers use the code for errors of their own.
_CLOSED = (-32000, "Connection closed")


class State(Enum):
    NEW = "new"
    CONNECTING = "connecting"
    READY = "ready"
    PARKED = "parked"  # its program was ended because nobody called; the next call starts it
    FAILED = "failed"  # waiting for the next attempt
    CLOSED = "closed"


class Status(NamedTuple):
    state: State
    error: str
    protocol: str
    tools: int
    pid: int | None = None  # of a program that we started
    in_flight: int = 0
    faults: int = 0  # in a row


class Connection:
    """Lives on the loop that runs `run`. Its methods are called there, but for `begin`, `ended`, `used` and `status`."""

    def __init__(
        self,
        server: Server,
        *,
        watchdog: Watchdog,
        asking: Asking,
        publish: Callable[[Server, Offer], Awaitable[None]],
        browse: Browse | None = None,
    ) -> None:
        self.server = server
        self.state = State.NEW
        self.error = ""
        self.protocol = ""
        self.offer = Offer()
        self._watchdog = watchdog
        self._asking = asking
        self._publish = publish
        self._browse = browse
        self._no_login = ""
        self._not_taken = ""  # an answer, and why
        self._client: Client | None = None
        self._process: Process | None = None
        self._changed = asyncio.Event()  # replaced at every change of state
        self._lost = asyncio.Event()  # the connection in use is no good any more
        self._wanted = asyncio.Event()  # somebody waits for a connection
        self._relist = asyncio.Event()
        self._closing = asyncio.Event()
        self._connecting: asyncio.Timeout | None = None
        self._faults = 0
        self._retry_at = 0.0
        self._in_flight = 0
        self._last_used = time.monotonic()

    @property
    def _connect_seconds(self) -> float:
        """How long connecting may take. A person who logs in needs longer than a server."""
        return self.server.settings.connect_timeout + (LOGIN_SECONDS if self._browse else 0)

    def status(self) -> Status:
        pid = self._process.child.pid if self._process is not None else None
        return Status(self.state, self.error, self.protocol, len(self.offer.tools), pid, self._in_flight, self._faults)

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
        """Begin to end. Not by cancelling the task: what it is just cleaning up would be left half done."""
        self._closing.set()
        if self._connecting is not None:
            self._connecting.reschedule(0)

    async def _once(self) -> None:
        """One connection, from its beginning to its end."""
        self._lost, self._wanted = asyncio.Event(), asyncio.Event()
        self._no_login = self._not_taken = ""
        self._set(State.CONNECTING)
        try:
            async with contextlib.AsyncExitStack() as stack:
                async with asyncio.timeout(self._connect_seconds) as self._connecting:
                    client = await stack.enter_async_context(self._opened())
                    self.offer = await list_offer(client, self.server.settings)
                    await self._publish(self.server, self.offer)
                self._connecting = None
                self._client, self.protocol, self.error, self._faults = client, client.protocol_version, "", 0
                self._last_used = time.monotonic()
                self._set(State.READY)
                parked = await self._stay(client)
            self._client = None
            if parked:
                self._set(State.PARKED)
                return
            self._fail(self._why_lost())
        except Exception as error:  # noqa: BLE001  a server may fail to connect in any way, and the others go on
            self._client = None
            self._fail(self._explained(error))
        finally:
            self._connecting = None

    @contextlib.asynccontextmanager
    async def _opened(self) -> AsyncIterator[Client]:
        from importlib.metadata import version

        from mcp_types import Implementation

        from mcp import Client

        settings = expanded(self.server.settings)
        client = Client(
            self._transport(settings),
            mode="legacy" if settings.protocol == "handshake" else "auto",
            message_handler=self._hear,
            client_info=Implementation(name="handrail", version=version("handrail")),
            cache=None,
            **self._asking.callbacks(self.server.name, settings),
        )
        async with client:
            yield client

    def _transport(self, settings: McpServerConfig) -> Any:
        if self.server.way == "stdio":
            from .stdio import stdio_transport

            return stdio_transport(
                settings, watchdog=self._watchdog, started=self._started, ended=lambda: self._lost.set()
            )
        from .http import http_transport

        logins = Logins(self._browse, self._no_login_because)
        return http_transport(self.server, settings, logins, refused=self._not_taken_because)

    # The SDK hides both behind a connection that is lost, or an answer that never came.
    def _no_login_because(self, why: str) -> None:
        self._no_login = why

    def _not_taken_because(self, why: str) -> None:
        self._not_taken = why

    def _started(self, process: Process) -> None:
        self._process = process

    async def _stay(self, client: Client) -> bool:
        """Until the connection is lost, or nobody has called for long: then True."""
        listening = asyncio.ensure_future(self._listen(client))
        try:
            while not self._lost.is_set() and not self._closing.is_set():
                await _first_of(self._lost, self._relist, self._closing, timeout=self._until_idle())
                if self._relist.is_set() and not self._lost.is_set():
                    self._relist.clear()
                    await self._list_again(client)
                if self._is_idle():
                    self._client = None
                    return True
            return False
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _list_again(self, client: Client) -> None:
        try:
            async with asyncio.timeout(self.server.settings.connect_timeout):
                self.offer = await list_offer(client, self.server.settings)
                await self._publish(self.server, self.offer)
        except Exception as error:  # noqa: BLE001  the list that we have still holds
            log.warning("MCP server %s changed its list, which cannot be read: %s", self.server.name, _text(error))

    async def _listen(self, client: Client) -> None:
        with contextlib.suppress(Exception):  # a server need not offer it
            async for _ in changes(client):
                self._relist.set()

    async def _hear(self, message: Any) -> None:
        """Whatever the server says unasked, and lines that are no messages."""
        if getattr(message, "method", "").endswith("/list_changed"):
            self._relist.set()

    def _until_idle(self) -> float | None:
        limit = self.server.settings.idle_seconds if self.server.way == "stdio" else 0
        if not limit:
            return None
        return limit if self._in_flight else max(0.01, self._last_used + limit - time.monotonic())

    def _is_idle(self) -> bool:
        limit = self.server.settings.idle_seconds if self.server.way == "stdio" else 0
        return bool(limit) and not self._in_flight and time.monotonic() - self._last_used >= limit

    async def _pause(self) -> None:
        """Longer after every fault, and never in step with others. A call that waits ends it early, unless there were many."""
        pause = min(MAX_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(self._faults, 12)) * random.uniform(0.5, 1)
        self._retry_at = time.monotonic() + pause
        if self._faults >= MAX_FAULTS:
            await _first_of(self._closing, timeout=pause)
        else:
            await _first_of(self._closing, self._wanted, timeout=pause)

    async def use(
        self,
        work: Callable[[Client], Awaitable[T]],
        *,
        timeout: float | None = None,  # noqa: ASYNC109  the call's own limit
    ) -> T:
        """Do something with the server, once: what was sent to a server that died is not sent again."""
        limit = timeout or self.server.settings.timeout
        self._in_flight += 1
        try:
            async with asyncio.timeout(limit) as scope:
                client = await self._ready()
                return await work(client)
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

    async def _ready(self) -> Client:
        while True:
            if self._client is not None and self._process is not None and self._process.has_died():
                self._lost.set()  # a moment before its output closes
            if self._client is not None and not self._lost.is_set():
                return self._client
            if self.state is State.CLOSED:
                raise ToolUnavailable(f"MCP server {self.server.name} is closed")
            if self.state is State.FAILED and self._faults >= MAX_FAULTS:
                seconds = max(0.0, self._retry_at - time.monotonic())
                raise ToolUnavailable(
                    f"MCP server {self.server.name} is unavailable: {self.error}; next attempt in {seconds:.0f} s",
                    retry_after_seconds=round(seconds, 1),
                )
            self._wanted.set()
            await self._changed.wait()

    def _failure(self, error: Exception) -> ToolError:
        """What a call ends with. What the server answered is the tool's own; only a lost connection is a fault."""
        from mcp.shared.exceptions import MCPError

        if self._not_taken:
            why, self._not_taken = self._not_taken, ""
            return ToolFailed(f"MCP server {self.server.name}: {why}")
        if isinstance(error, MCPError) and (error.code, error.message) != _CLOSED:
            return ToolFailed(f"MCP server {self.server.name}: {error.message}", code=error.code)
        if isinstance(error, ValueError | RuntimeError):  # an answer that does not fit the protocol, or its own schema
            return ToolFailed(f"MCP server {self.server.name}: {_text(error)}")
        self._lost.set()
        return ToolUnavailable(self._no_login) if self._no_login else self._lost_in_call(error)

    def _lost_in_call(self, error: Exception) -> ToolFailed:
        return ToolFailed(
            f"MCP server {self.server.name} was lost in the middle of the call ({self._why_lost() or _text(error)}); "
            "whether it took effect is not known",
            lost=True,
        )

    async def settled(self) -> None:
        """Until it is ready, or the first attempt has failed."""
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
        process, self_ended = self._process, "the connection was lost"
        if process is None:
            return self._no_login or self_ended
        code = process.child.returncode
        how = process.why or (f"it ended with code {code}" if code is not None else "it closed its output")
        return f"{how}: {process.tail()}" if process.tail() else how

    def _explained(self, error: Exception) -> str:
        if known := self._no_login or self._not_taken:
            return known
        if isinstance(error, TimeoutError):
            why = f"it did not answer within {self.server.settings.connect_timeout:g} s"
        elif isinstance(first := _first(error), ConfigError | ToolError):
            return str(first)
        else:
            why = _text(error)
        process = self._process
        if process is not None and process.is_lost:
            return self._why_lost()
        return f"{why}: {process.tail()}" if process is not None and process.tail() else why


async def _first_of(*events: asyncio.Event, timeout: float | None = None) -> None:  # noqa: ASYNC109  a limit is no error here
    waiters = [asyncio.ensure_future(each.wait()) for each in events]
    try:
        await asyncio.wait(waiters, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for waiter in waiters:
            waiter.cancel()


def _first(error: BaseException) -> BaseException:
    """Of a group, the first that it holds: the SDK wraps what went wrong in as many groups as it has tasks."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _text(error: BaseException) -> str:
    error = _first(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__

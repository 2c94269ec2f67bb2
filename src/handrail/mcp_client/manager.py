"""All connections of a process, on one loop in one thread, and calls to them from anywhere."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from importlib.util import find_spec
from typing import Any, TypeVar

from ..base.workers import pool
from ..errors import ToolUnavailable
from ..types import ToolContext
from .connection import Connection, Status, Surroundings
from .http import WhyDenied
from .oauth import Browse
from .sdk import mcp
from .server_config import Server
from .server_requests import Caller, ServerRequests, calling
from .stdio import Launch, Watchdog
from .tool_listing import Offer

T = TypeVar("T")
OnOffer = Callable[[Server, Offer], None]
CLOSE_SECONDS = 8.0


class McpConnections:
    """Connects in the background. `on_offer` gets a server's offer on a worker thread: at first, and at every change.
    `why_denied` says which hosts no server is to be reached at."""

    def __init__(
        self,
        servers: Sequence[Server],
        *,
        on_offer: OnOffer,
        browse: Browse | None = None,
        launch: Launch | None = None,
        why_denied: WhyDenied = lambda _: "",
    ) -> None:
        self.servers = {server.name: server for server in servers}
        self._on_offer = on_offer
        self._watchdog, self.requests = Watchdog(), ServerRequests()
        self._around = Surroundings(self._watchdog, self.requests, self._publish, browse, launch, why_denied)
        self._connections: dict[str, Connection] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="handrail-mcp", daemon=True)
        self._thread.start()

    def start(self, names: Sequence[str] | None = None) -> None:
        """Start to connect to these servers, or to all. Those that were started before are left alone."""
        check_installed()
        # What the SDK logs is in the state of the server too; without a handler it would be printed over what users read.
        logging.getLogger("mcp").addHandler(logging.NullHandler())
        wanted = [name for name in (self.servers if names is None else names) if name in self.servers]
        self._submit(self._start(wanted)).result()

    async def _start(self, names: Sequence[str]) -> None:
        for name in names:
            server = self.servers[name]
            if name in self._tasks or server.problem or not server.settings.enabled:
                continue
            self._connections[name] = connection = Connection(server, self._around)
            self._tasks[name] = asyncio.ensure_future(connection.run())

    async def _publish(self, server: Server, offer: Offer) -> None:
        # Thousands of tools take a while to register; calls to other servers go on meanwhile.
        await asyncio.wrap_future(pool.submit(self._on_offer, server, offer))

    def wait(self, timeout: float, names: Sequence[str] | None = None) -> None:
        """Wait until each of them is connected or has failed once, at most `timeout` seconds."""
        self._submit(self._settle(timeout, names)).result()

    async def _settle(self, timeout: float, names: Sequence[str] | None) -> None:  # noqa: ASYNC109  the caller's limit
        chosen = [each for name, each in self._connections.items() if names is None or name in names]
        waiting = [asyncio.ensure_future(each.settled()) for each in chosen]
        if waiting:
            await asyncio.wait(waiting, timeout=timeout)
        for each in waiting:
            each.cancel()

    def status(self) -> dict[str, Status]:
        """The state of each server that was started."""
        return {name: connection.status() for name, connection in self._connections.items()}

    def offer(self, name: str) -> Offer:
        connection = self._connections.get(name)
        return connection.offer if connection is not None else Offer()

    def use(self, name: str, work: Callable[[mcp.Client], Awaitable[T]], context: ToolContext) -> T | Awaitable[T]:
        """Do something with a server: returns the result in sync code, an awaitable of it inside a running loop."""
        coroutine = self._use(name, work, Caller.of(context))
        try:
            future = self._submit(coroutine)
        except RuntimeError:  # the loop is closed
            coroutine.close()
            raise
        forget = context.cancel.on_cancel(future.cancel)
        future.add_done_callback(lambda _: forget())
        if asyncio._get_running_loop() is not None:
            return _awaited(future, context)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise context.cancel.error() from None
        except BaseException:  # Ctrl-C stops the call too; a call that has ended is not affected
            future.cancel()
            raise

    async def _use(self, name: str, work: Callable[[mcp.Client], Awaitable[T]], caller: Caller) -> T:
        connection = self._connections.get(name)
        if connection is None:
            raise ToolUnavailable(f"MCP server {name} is not connected")
        calling.set(caller)
        self.requests.begin(name, caller)
        try:
            return await connection.use(work)
        finally:
            self.requests.end(name, caller)

    def close(self) -> None:
        """End every connection, and every server that was started. May be called twice."""
        if self.loop.is_closed():
            return
        with contextlib.suppress(TimeoutError):  # the watchdog ends those that do not end by themselves
            self._submit(self._close_all()).result(CLOSE_SECONDS)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(CLOSE_SECONDS)
        self._watchdog.close()

    async def _close_all(self) -> None:
        for connection in self._connections.values():
            connection.close()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            left = asyncio.all_tasks(self.loop)
            for task in left:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()


async def _awaited(future: concurrent.futures.Future[T], context: ToolContext) -> T:
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        if context.cancel.cancelled:
            raise context.cancel.error() from None
        raise


def check_installed() -> None:
    if find_spec("mcp") is None:
        raise ToolUnavailable("MCP servers need the package mcp; pip install 'handrail[mcp]'")

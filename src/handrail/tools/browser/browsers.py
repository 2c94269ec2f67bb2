"""The browser of a runtime: started at its first use on a thread of its own, with a session for each task that uses it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import os
import threading
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from ...errors import CallCancelled, ToolError, ToolFailed
from ...types import JsonDict
from .downloads import incoming
from .profile_dir import Loop, OwnFiles
from .proxy import GuardProxy
from .session import NO_PAGE, Session

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Playwright, ProxySettings, Route

    from ...config import Config

log = logging.getLogger(__name__)

T = TypeVar("T")

_START_SECONDS = 60.0
_CLOSE_SECONDS = 10.0
_STEP_SECONDS = 5.0
_LEAST_LOOK_SECONDS = 1.0
_ARGUMENTS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-crash-reporter",
    "--disable-sync",
    # Voice and video would go past the proxy.
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
)


class Browsers:
    """Sessions by task, in one browser. Safe under threads; `close` ends the browser and the thread."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._room: _Room | None = None

    async def use(self, task_id: str, work: Callable[[Session], Awaitable[T]], *, start: bool = False) -> T:
        """Do something with the task's session, in the browser's own loop. Cancelling the caller cancels the work.

        `start`: open a session, and start the browser, where there is none.
        """
        room = self._room
        if start:
            room = self._opened()
        elif room is None or room.is_over or task_id not in room.tasks:
            raise ToolFailed(NO_PAGE)
        return await asyncio.wrap_future(room.submit(task_id, work))

    def close_task(self, task_id: str) -> None:
        """Close the task's pages, if it has any."""
        room = self._room
        if room is not None and not room.is_over:
            room.close_session(task_id)

    def close(self) -> None:
        with self._lock:
            room, self._room = self._room, None
        if room is not None:
            room.close()

    def _opened(self) -> _Room:
        with self._lock:
            if self._room is None or self._room.is_over:
                self._room = _Room(self._config)
            return self._room


class _Room:
    """The thread, its loop, and what lives in it."""

    def __init__(self, config: Config) -> None:
        from ...net.url_guard import Guard

        self._config = config
        self.guard = Guard(config.web.allow_private)
        self.proxy = GuardProxy(self.guard)
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._starting = asyncio.Lock()
        self._sessions: dict[str, Session] = {}
        self._over = asyncio.Event()
        self._files = OwnFiles()
        self._loop = Loop(self._files.folder)
        self.thread = threading.Thread(target=self._live, name="handrail-browser", daemon=True)
        self.thread.start()

    @property
    def is_over(self) -> bool:
        return self._over.is_set() or not self.thread.is_alive()

    @property
    def tasks(self) -> list[str]:
        """Those that have a session."""
        return list(self._sessions)

    def submit(self, task_id: str, work: Callable[[Session], Awaitable[T]]) -> concurrent.futures.Future[T]:
        return asyncio.run_coroutine_threadsafe(self._with_session(task_id, work), self._loop)

    def close_session(self, task_id: str) -> None:
        try:
            asyncio.run_coroutine_threadsafe(self._end_session(task_id), self._loop).result(_CLOSE_SECONDS)
        except (TimeoutError, RuntimeError, concurrent.futures.CancelledError):
            log.warning("the browser does not close the pages of the task %s", task_id)

    def close(self) -> None:
        with contextlib.suppress(RuntimeError):  # it was idle, and has ended by itself
            self._loop.call_soon_threadsafe(self._over.set)
        self.thread.join(_CLOSE_SECONDS * 2)

    # All below runs in the loop

    def _live(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._stay())
        finally:
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            # What was cancelled gets to end: half of it waits for a browser that is gone.
            self._loop.run_until_complete(asyncio.sleep(0.05))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()
            self._files.remove()

    async def _stay(self) -> None:
        idle = self._config.browser.idle_seconds
        while not self._over.is_set():
            try:
                async with asyncio.timeout(max(_LEAST_LOOK_SECONDS, idle / 4) if idle else None):
                    await self._over.wait()
            except TimeoutError:
                await self._end_idle(idle)
        await self._shut()

    async def _with_session(self, task_id: str, work: Callable[[Session], Awaitable[T]]) -> T:
        session = await self._session(task_id)
        async with session.turn:
            session.used_at = time.monotonic()
            try:
                return await work(session)
            finally:
                session.used_at = time.monotonic()

    async def _session(self, task_id: str) -> Session:
        async with self._starting:
            if self._over.is_set():
                raise CallCancelled("the browser is being closed")
            session = self._sessions.get(task_id)
            if session is not None and not session.has_exited:
                return session
            context = await self._new_context()
            session = self._sessions[task_id] = Session(context, task_id, self._config, self.guard, self.proxy)
            await session.open()
            return session

    async def _new_context(self) -> BrowserContext:
        if self._browser is None or not self._browser.is_connected():
            self._sessions.clear()
            await self._start()
        assert self._browser is not None
        proxy: ProxySettings | None = None
        is_far = self._config.browser.cdp_url and not _is_here(self._config.browser.cdp_url)
        if self._config.browser.cdp_url and not is_far:
            proxy = {"server": await self.proxy.address(), "bypass": "<-loopback>"}
        # Somebody else's browser has windows of its own: they stay alone.
        context = await self._browser.new_context(accept_downloads=True, service_workers="block", proxy=proxy)
        if is_far:
            await context.route("**/*", self._judge)
        return context

    async def _judge(self, route: Route) -> None:
        """For a browser on another machine, which cannot be sent through the proxy."""
        url = route.request.url
        try:
            if url.startswith(("http:", "https:")):
                target = self.guard.check_url(url)
                await self.guard.addresses(target.host, target.port)
        except ToolError as error:
            self.proxy.refusals.append((target_host(url), error))
            await route.abort("blockedbyclient")
            return
        await route.continue_()

    async def _start(self) -> None:
        from playwright.async_api import Error, async_playwright

        from .installed_browsers import executable

        config = self._config.browser
        if self._playwright is None:
            self._playwright = await async_playwright().start()
        chromium = self._playwright.chromium
        try:
            if config.cdp_url:
                self._browser = await chromium.connect_over_cdp(config.cdp_url, timeout=_START_SECONDS * 1000)
                return
            self._browser = await chromium.launch(
                executable_path=executable(config) or None,
                headless=config.headless,
                chromium_sandbox=config.sandbox == "auto" and os.geteuid() != 0,
                args=list(_ARGUMENTS),
                proxy={"server": await self.proxy.address(), "bypass": "<-loopback>"},
                downloads_path=incoming(),
                env={**_environment(), "TMPDIR": self._files.folder},
                timeout=_START_SECONDS * 1000,
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )
        except Error as error:
            raise ToolFailed(_why_not_started(config.cdp_url, str(error))) from None

    async def _end_session(self, task_id: str) -> None:
        session = self._sessions.pop(task_id, None)
        if session is not None:
            await session.close()

    async def _end_idle(self, limit: float) -> None:
        if self._starting.locked():  # somebody is about to use it
            return
        now = time.monotonic()
        for task_id, session in list(self._sessions.items()):
            if not session.turn.locked() and now - session.used_at >= limit:
                await self._end_session(task_id)
        if not self._sessions and self._browser is not None:
            self._over.set()  # the next use starts another

    async def _shut(self) -> None:
        """Each step has its time: a page that hangs must not keep the browser from ending, nor that its driver."""
        steps: list[Callable[[], Awaitable[object]]] = [session.close for session in self._sessions.values()]
        steps += [one.close for one in (self._browser, self.proxy) if one is not None]
        steps += [self._playwright.stop] if self._playwright is not None else []
        for step in steps:
            try:
                async with asyncio.timeout(_STEP_SECONDS):
                    await step()
            except Exception as error:  # noqa: BLE001  whatever is wrong with it, the next step is the stronger one
                log.warning("the browser does not end as it should: %s: %s", type(error).__name__, error)


def _is_here(cdp_url: str) -> bool:
    """Whether the browser runs on this machine, where it can reach the proxy."""
    return target_host(cdp_url) in ("localhost", "127.0.0.1", "::1")


def target_host(url: str) -> str:
    return urlsplit(url).hostname or ""


def _environment() -> JsonDict:
    """None of our keys: what pages do to a browser they do to its environment."""
    kept = (
        "PATH",
        "HOME",
        "LANG",
        "LC_ALL",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "XDG_RUNTIME_DIR",
        "XAUTHORITY",
        "TZ",
    )
    return {name: os.environ[name] for name in kept if name in os.environ}


def _why_not_started(cdp_url: str, error: str) -> str:
    first = " ".join(error.split())[:400]
    if cdp_url:
        return f"no browser answers at {cdp_url}: {first}; start it, or correct browser.cdp_url"
    hint = "; set browser.sandbox to off if this machine forbids the browser its sandbox" if "sandbox" in error else ""
    return f"the browser does not start: {first}{hint}"

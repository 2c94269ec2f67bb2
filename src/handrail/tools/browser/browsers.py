"""The browser of a runtime: started at its first use on a thread of its own, with one session per task."""

import asyncio
import concurrent.futures
import contextlib
import logging
import os
import shutil
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from playwright.async_api import Browser, BrowserContext, Error, Playwright, ProxySettings, Route, async_playwright

from ...egress.questions import ToolHosts
from ...environments import private_dirs
from ...errors import CallCancelled, ToolError, ToolFailed
from ...settings.schema import Config
from .session import NO_PAGE, GuardProxy, Session, incoming, target_host
from .tool import executable

log = logging.getLogger(__name__)
T = TypeVar("T")
_START_SECONDS = 60.0
_CLOSE_SECONDS = 10.0
_STEP_SECONDS = 5.0
_MIN_POLL_SECONDS = 1.0
# Voice and video would bypass the proxy. Chromium reads the first switch of that, headless shells of its project the second.
_SWITCHES = Path(__file__).with_name("switches.txt").read_text().split()
# Of the variables, and not our keys: a page that takes over the browser can read its environment.
_KEPT = "PATH HOME LANG LC_ALL DISPLAY WAYLAND_DISPLAY XDG_RUNTIME_DIR XAUTHORITY TZ".split()
# In every document before its own scripts. Voice and video would bypass the proxy.
_WITHOUT_WEBRTC = (
    "for (const name of ['RTCPeerConnection', 'webkitRTCPeerConnection', 'WebTransport']) delete globalThis[name];"
)


class Loop(asyncio.SelectorEventLoop):
    """An event loop that sets TMPDIR for the processes it starts: Playwright has no option for its driver."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    async def subprocess_exec(self, *program: Any, env: dict[str, str] | None = None, **how: Any) -> Any:
        given = os.environ if env is None else env
        return await super().subprocess_exec(*program, env={**given, "TMPDIR": self._folder}, **how)


class Browsers:
    """Sessions by task, in one browser. Safe under threads; `close` ends the browser and the thread."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._thread: _BrowserThread | None = None

    async def use(self, task_id: str, work: Callable[[Session], Awaitable[T]], *, start: bool = False) -> T:
        """Run `work` with the task's session in the browser's own loop. Cancelling the caller cancels the work. `start` opens a
        session, and starts the browser, if there is none."""
        thread = self._thread
        if start:
            with self._lock:
                if self._thread is None or self._thread.has_ended:
                    self._thread = _BrowserThread(self._config)
                thread = self._thread
        elif thread is None or thread.has_ended or task_id not in thread.tasks:
            raise ToolFailed(NO_PAGE)
        return await asyncio.wrap_future(thread.submit(task_id, work))

    def close_task(self, task_id: str) -> None:
        thread = self._thread
        if thread is not None and not thread.has_ended:
            thread.close_session(task_id)

    def close(self) -> None:
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.close()


class _BrowserThread:
    """The browser's thread, its event loop and the sessions."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._hosts = ToolHosts(config, "the browser")
        # Of the browser itself, and of tasks that have no policy of their own.
        self.proxy = GuardProxy(self._hosts.guard)
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._starting = asyncio.Lock()
        self._sessions: dict[str, Session] = {}
        self._ended = asyncio.Event()
        private_dirs.prune_browsers(dry_run=False)
        self._profile = private_dirs.make(private_dirs.BROWSER)  # for the browser's profile and temporary files
        self._loop = Loop(self._profile)
        self.thread = threading.Thread(target=self._live, name="handrail-browser", daemon=True)
        self.thread.start()

    @property
    def has_ended(self) -> bool:
        return self._ended.is_set() or not self.thread.is_alive()

    @property
    def tasks(self) -> list[str]:
        return list(self._sessions)

    def submit(self, task_id: str, work: Callable[[Session], Awaitable[T]]) -> concurrent.futures.Future[T]:
        return asyncio.run_coroutine_threadsafe(self._with_session(task_id, work), self._loop)

    def close_session(self, task_id: str) -> None:
        try:
            asyncio.run_coroutine_threadsafe(self._end_session(task_id), self._loop).result(_CLOSE_SECONDS)
        except (TimeoutError, RuntimeError, concurrent.futures.CancelledError):
            log.warning("the browser did not close the pages of task %s in time", task_id)

    def close(self) -> None:
        with contextlib.suppress(RuntimeError):  # it was idle, and has ended by itself
            self._loop.call_soon_threadsafe(self._ended.set)
        self.thread.join(_CLOSE_SECONDS * 2)

    # Everything below runs in the loop

    def _live(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._stay())
        finally:
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            # Let cancelled tasks end: half of them wait for a browser that is gone.
            self._loop.run_until_complete(asyncio.sleep(0.05))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()
            shutil.rmtree(self._profile, ignore_errors=True)  # a process that is being killed may still write there

    async def _stay(self) -> None:
        idle = self._config.browser.idle_seconds
        while not self._ended.is_set():
            try:
                async with asyncio.timeout(max(_MIN_POLL_SECONDS, idle / 4) if idle else None):
                    await self._ended.wait()
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
            if self._ended.is_set():
                raise CallCancelled("the browser is being closed")
            session = self._sessions.get(task_id)
            if session is not None and not session.is_closed:
                return session
            hosts, proxy = self._hosts, self.proxy
            if hosts.applies:  # questions are asked of the task's own person
                hosts = ToolHosts(self._config, "the browser")
                proxy = GuardProxy(hosts.guard)
            context = await self._new_context(proxy)
            session = self._sessions[task_id] = Session(context, task_id, self._config, hosts, proxy)
            await session.open()
            return session

    async def _new_context(self, own: GuardProxy) -> BrowserContext:
        if self._browser is None or not self._browser.is_connected():
            self._sessions.clear()
            await self._start()
        assert self._browser is not None
        proxy: ProxySettings | None = None
        cdp_url = self._config.browser.cdp_url
        is_remote = cdp_url and not _is_local(cdp_url)
        if not is_remote and (cdp_url or own is not self.proxy):
            proxy = {"server": await own.address(), "bypass": "<-loopback>"}
        # A browser that we did not start has windows of its own: leave them alone.
        context = await self._browser.new_context(accept_downloads=True, service_workers="block", proxy=proxy)
        if cdp_url:  # it was started without our switches
            await context.add_init_script(_WITHOUT_WEBRTC)
        if is_remote:
            await context.route("**/*", partial(_judge, own))
        return context

    async def _start(self) -> None:
        config = self._config.browser
        if self._playwright is None:
            self._playwright = await async_playwright().start()
        chromium = self._playwright.chromium
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        try:
            if config.cdp_url:
                self._browser = await chromium.connect_over_cdp(config.cdp_url, timeout=_START_SECONDS * 1000)
                return
            self._browser = await chromium.launch(
                executable_path=executable(config) or None,
                headless=config.headless,
                chromium_sandbox=config.sandbox == "auto" and os.geteuid() != 0,
                args=_SWITCHES,
                proxy={"server": await self.proxy.address(), "bypass": "<-loopback>"},
                downloads_path=incoming(),
                env={**environment, "TMPDIR": self._profile},
                timeout=_START_SECONDS * 1000,
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )
        except Error as error:
            why = " ".join(str(error).split())[:400]
            if config.cdp_url:
                told = f"no browser answers at {config.cdp_url}: {why}; start it, or correct browser.cdp_url"
                raise ToolFailed(told) from None
            is_sandbox = "sandbox" in str(error)
            hint = "; set browser.sandbox to off if this machine forbids the browser its sandbox" if is_sandbox else ""
            raise ToolFailed(f"the browser does not start: {why}{hint}") from None

    async def _end_session(self, task_id: str) -> None:
        if (session := self._sessions.pop(task_id, None)) is not None:
            await session.close()

    async def _end_idle(self, limit: float) -> None:
        if self._starting.locked():  # a call is about to use it
            return
        now = time.monotonic()
        for task_id, session in list(self._sessions.items()):
            if not session.turn.locked() and now - session.used_at >= limit:
                await self._end_session(task_id)
        if not self._sessions and self._browser is not None:
            self._ended.set()  # the next use starts another

    async def _shut(self) -> None:
        """Each step has a timeout: a page that hangs must not keep the browser or its driver from ending."""
        steps: list[Callable[[], Awaitable[object]]] = [session.close for session in self._sessions.values()]
        steps += [one.close for one in (self._browser, self.proxy) if one is not None]
        steps += [self._playwright.stop] if self._playwright is not None else []
        for step in steps:
            try:
                async with asyncio.timeout(_STEP_SECONDS):
                    await step()
            except Exception as error:  # noqa: BLE001  whatever is wrong with it, the next step is the stronger one
                log.warning("the browser does not close cleanly: %s: %s", type(error).__name__, error)


def _is_local(cdp_url: str) -> bool:
    """Whether the browser runs on this machine, where it can reach the proxy."""
    return target_host(cdp_url) in ("localhost", "127.0.0.1", "::1")


async def _judge(proxy: GuardProxy, route: Route) -> None:
    """For a browser on another machine, which cannot be sent through the proxy."""
    url = route.request.url
    try:
        if url.startswith(("http:", "https:")):
            target = proxy.guard.check_url(url)
            await proxy.guard.addresses(target.host, target.port)
    except ToolError as error:
        proxy.refusals.append((target_host(url), error))
        await route.abort("blockedbyclient")
        return
    await route.continue_()

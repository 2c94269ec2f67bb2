"""One task's pages: their tabs, dialogs, console messages and downloads, and the proxy that connects them. The proxy resolves
every name itself and connects only where the guard allows. Rules inside the browser would miss redirects, web sockets and names
that change their address; this sees every connection."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections import deque
from collections.abc import Awaitable, Coroutine
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from playwright.async_api import BrowserContext, Dialog, Download, Error, Page, Request

from ...config.paths import state_dir
from ...egress.proxy import Program, Proxy
from ...egress.questions import ToolHosts
from ...errors import CallTimeout, ToolError, ToolFailed
from ...net.url_guard import Guard
from ...settings.schema import Config
from ...types import JsonDict

T = TypeVar("T")
NO_PAGE = "no page is open; browser_navigate opens one"
_MAX_TABS = 12
_MAX_MESSAGES = 200
_MESSAGE_CHARS = 1_000
# More dialogs than this are dismissed unread.
_MAX_DIALOGS = 5
# In the page itself: a dialog that is never shown costs nothing.
_FEW_DIALOGS = f"""(() => {{
  let shown = 0;
  for (const [name, nothing] of [['alert', undefined], ['confirm', false], ['prompt', null]]) {{
    const real = window[name];
    window[name] = (...given) => ++shown > {_MAX_DIALOGS} ? nothing : real.apply(window, given);
  }}
}})()"""
_SETTLE_SECONDS = 1.5
_ALIVE_SECONDS = 2.0
_TICK_SECONDS = 0.02
_NEVER_ENDING = ("eventsource", "websocket", "media", "ping")
_DOWNLOAD_SECONDS = 300.0
_POLL_SECONDS = 0.1
_WAIT_SECONDS = 10.0
_MAX_AT_ONCE = 5


class Session:
    """The pages of one task. All of it runs in the browser's loop; `turn` is held while a call acts."""

    def __init__(
        self, context: BrowserContext, task_id: str, config: Config, hosts: ToolHosts, proxy: GuardProxy
    ) -> None:
        self.context, self.config, self.hosts, self.proxy = context, config.browser, hosts, proxy
        self.guard = hosts.guard
        self.turn = asyncio.Lock()
        self.used_at = time.monotonic()
        self.is_closed = False
        self.console: deque[JsonDict] = deque(maxlen=_MAX_MESSAGES)
        self.dialog: Dialog | None = None
        self.downloads = Downloads(task_id, config.browser.max_download_bytes)
        self.last_snapshot = ""
        self.notices: list[str] = []
        self._page: Page | None = None
        self._dialog_opened = asyncio.Event()
        self._dialogs_seen = self._dialogs_dismissed = 0
        self._held: asyncio.Task[Any] | None = None
        self._background_tasks: set[asyncio.Future[Any]] = set()
        self._requests: dict[Request, float] = {}
        context.set_default_timeout(self.config.timeout * 1000)
        context.on("page", self._on_page)
        context.on("close", self._on_close)

    async def open(self) -> None:
        await self.context.add_init_script(_FEW_DIALOGS)
        await self.context.new_page()

    async def close(self) -> None:
        self.is_closed = True
        self.downloads.close()
        if self.hosts.applies:  # then the proxy is this session's own
            await self.proxy.close()
        if self._held is not None:
            self._held.cancel()
        with contextlib.suppress(Error):
            await self.context.close()

    @property
    def tabs(self) -> list[Page]:
        return self.context.pages

    @property
    def page(self) -> Page:
        """The tab that the tools act on."""
        if self._page is None or self._page.is_closed():
            if not self.tabs:
                raise ToolFailed(NO_PAGE)
            self._page = self.tabs[-1]
        return self._page

    async def switch(self, number: int) -> None:
        tabs = self.tabs
        if not 1 <= number <= len(tabs):
            raise ToolFailed(f"there is no tab {number}; there are {len(tabs)}")
        self._page = tabs[number - 1]
        await self._page.bring_to_front()

    async def fresh_page(self) -> Page:
        """The current tab; a new one when none is open, or when the current one hangs or shows a dialog."""
        if not self.tabs:
            return await self.context.new_page()
        page = self.page
        if self.dialog is None:
            with contextlib.suppress(TimeoutError, Error):  # one that hangs would not even navigate
                async with asyncio.timeout(_ALIVE_SECONDS):
                    await page.evaluate("1")
                return page
        self.dialog, self._held = None, None
        self._dialog_opened.clear()
        new = await self.context.new_page()
        self._in_background(page.close())
        return new

    async def act(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Run `work` to its end, or until the page shows a dialog: it then continues after the answer and this returns None."""
        self.raise_if_dialog(work)
        task = asyncio.ensure_future(work)
        opened = asyncio.ensure_future(self._dialog_opened.wait())
        try:
            # The work has a timeout of its own; this is for a page that blocks even that.
            await asyncio.wait({task, opened}, timeout=self.config.timeout + 3, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            if not opened.done():
                raise CallTimeout("the page does not answer; open another with browser_navigate")
            self._held = task
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            return None
        except BaseException:
            task.cancel()
            raise
        finally:
            opened.cancel()

    def raise_if_dialog(self, work: Coroutine[Any, Any, Any] | None = None) -> None:
        """A page with an open dialog does nothing else until it is answered."""
        if self.dialog is None:
            return
        if work is not None:
            work.close()
        raise ToolFailed("the page waits for an answer to its dialog: browser_dialog", dialog=self.dialog_facts())

    async def settle(self) -> None:
        """Wait a short while for the server's answers."""
        end = time.monotonic() + _SETTLE_SECONDS
        # Requests come and go in between, so no single event says that the last one is done.
        while self.is_waiting_for_server and self.dialog is None and time.monotonic() < end:  # noqa: ASYNC110  see above
            await asyncio.sleep(_TICK_SECONDS)

    @property
    def is_waiting_for_server(self) -> bool:
        """Whether requests are open, apart from those that never end, such as an event stream."""
        now = time.monotonic()
        return any(now - began < _SETTLE_SECONDS for began in self._requests.values())

    def reset_page_counters(self) -> None:
        self._dialogs_seen = 0
        self._requests.clear()

    def dialog_facts(self) -> JsonDict:
        assert self.dialog is not None
        facts: JsonDict = {"type": self.dialog.type, "message": self.dialog.message[:_MESSAGE_CHARS]}
        if self.dialog.default_value:
            facts["default"] = self.dialog.default_value[:_MESSAGE_CHARS]
        return facts

    async def answer(self, *, accept: bool, text: str | None) -> None:
        dialog, self.dialog = self.dialog, None
        if dialog is None:
            raise ToolFailed("the page shows no dialog")
        self._dialog_opened.clear()
        await (dialog.accept(text) if accept and text is not None else dialog.accept() if accept else dialog.dismiss())
        held, self._held = self._held, None
        if held is not None:  # what the dialog had stopped, until it ends or the next dialog comes
            opened = asyncio.ensure_future(self._dialog_opened.wait())
            await asyncio.wait({held, opened}, timeout=self.config.timeout, return_when=asyncio.FIRST_COMPLETED)
            opened.cancel()
            if not held.done():
                self._held = held

    def news(self) -> JsonDict:
        news: JsonDict = {}
        if self.dialog is not None:
            news["dialog"] = self.dialog_facts()
        if self._dialogs_dismissed:
            news["dialogs_dismissed"], self._dialogs_dismissed = self._dialogs_dismissed, 0
        if files := self.downloads.news():
            news["downloads"] = files
        if len(self.tabs) > 1:
            current = self.page
            news["tabs"] = [
                {"tab": number, "url": tab.url[:500], **({"current": True} if tab is current else {})}
                for number, tab in enumerate(self.tabs, 1)
            ]
        if self.notices:
            news["notices"], self.notices = self.notices, []
        return news

    def _on_page(self, page: Page) -> None:
        if len(self.tabs) > _MAX_TABS:
            self.notices.append(f"a new tab was closed immediately: {_MAX_TABS} are open")
            self._in_background(page.close())
            return
        page.on("dialog", self._on_dialog)
        page.on("console", lambda message: self._note(message.type, message.text))
        page.on("pageerror", lambda error: self._note("error", str(error)))
        page.on("download", self.downloads.take)
        page.on("crash", lambda _: self.notices.append("the page crashed; open it again"))
        page.on("request", self._on_request)
        page.on("requestfinished", self._on_request_over)
        page.on("requestfailed", self._on_request_over)
        self._page = page

    def _on_request(self, request: Request) -> None:
        if request.resource_type not in _NEVER_ENDING:
            self._requests[request] = time.monotonic()

    def _on_request_over(self, request: Request) -> None:
        self._requests.pop(request, None)

    def _on_close(self, _: object) -> None:
        self.is_closed = True

    def _on_dialog(self, dialog: Dialog) -> None:
        if dialog.type == "beforeunload":
            self._in_background(dialog.accept())
            return
        self._dialogs_seen += 1
        if self.dialog is not None or self._dialogs_seen > _MAX_DIALOGS:
            self._dialogs_dismissed += 1
            self._in_background(dialog.dismiss())
            return
        self.dialog = dialog
        self._dialog_opened.set()

    def _in_background(self, work: Awaitable[Any]) -> None:
        """Run it in the background and ignore failures: the page may be gone meanwhile."""
        task = asyncio.ensure_future(work)
        self._background_tasks.add(task)

        def over(done: asyncio.Future[Any]) -> None:
            self._background_tasks.discard(done)
            if not done.cancelled():
                done.exception()

        task.add_done_callback(over)

    def _note(self, kind: str, text: str) -> None:
        self.console.append({"type": kind, "text": text[:_MESSAGE_CHARS]})


class Downloads:
    """Saves them in the state folder, under the task's name. One that grows too large or takes too long is ended."""

    def __init__(self, task_id: str, max_bytes: int) -> None:
        self._task_id, self._max_bytes = task_id, max_bytes
        self._running: dict[asyncio.Task[None], str] = {}
        self._news: list[JsonDict] = []
        self._began = asyncio.Event()

    def take(self, download: Download) -> None:
        task = asyncio.ensure_future(self._save(download))
        self._running[task] = download.url[:500]
        self._began.set()
        task.add_done_callback(lambda done: self._running.pop(done, None))

    def expect(self) -> None:
        """`wait_for_start` waits for a download that starts after this."""
        self._began.clear()

    async def wait_for_start(self) -> None:
        """Wait until the browser, which announced a download, says which one it is."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._began.wait(), _WAIT_SECONDS)

    async def wait(self) -> None:
        """Wait a short while for the running downloads."""
        if self._running:
            await asyncio.wait(set(self._running), timeout=_WAIT_SECONDS)

    def news(self) -> list[JsonDict]:
        """Finished downloads once, running ones every time."""
        news, self._news = self._news, []
        return [*news, *({"url": url, "running": True} for task, url in self._running.items() if not task.done())]

    def close(self) -> None:
        for task in self._running:
            task.cancel()

    async def _save(self, download: Download) -> None:
        about: JsonDict = {"url": download.url[:500]}
        try:
            if len(self._running) > _MAX_AT_ONCE:
                raise _Refused(f"{_MAX_AT_ONCE} downloads run already")
            async with asyncio.timeout(_DOWNLOAD_SECONDS):
                path = self._place(download.suggested_filename)
                await self._saved(download, path)
            self._news.append({**about, "file": str(path), "bytes": path.stat().st_size})
        except (_Refused, Error, TimeoutError, OSError) as error:
            why = f"took longer than {_DOWNLOAD_SECONDS:g} s" if isinstance(error, TimeoutError) else str(error)
            with contextlib.suppress(Error):
                await download.cancel()
            self._news.append({**about, "error": why[:300]})

    async def _saved(self, download: Download, path: Path) -> None:
        """Check the size while the browser writes the file."""
        saving: asyncio.Task[Any] = asyncio.ensure_future(download.save_as(path))
        try:
            while not saving.done():
                await asyncio.wait({saving}, timeout=_POLL_SECONDS)
                self._check(*incoming().glob("*"))
            saving.result()
            self._check(path)
        finally:
            saving.cancel()

    def _check(self, *files: Path) -> None:
        """Only the browser knows which download an unfinished file belongs to, so every running one is ended for it."""
        for file in files:
            with contextlib.suppress(FileNotFoundError):
                if file.stat().st_size > self._max_bytes:
                    file.unlink()
                    raise _Refused(f"larger than {self._max_bytes} bytes (browser.max_download_bytes)")

    def _place(self, suggested: str) -> Path:
        """A new file. The page chose the name, so little of it is kept."""
        folder = state_dir() / "downloads" / (re.sub(r"[^\w.-]+", "_", self._task_id)[:100].lstrip(".") or "task")
        folder.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"[^\w .()-]+", "_", suggested).strip(" .")[-120:] or "download"
        path, number = folder / name, 1
        while path.exists():
            number += 1
            path = folder / f"{Path(name).stem}-{number}{Path(name).suffix}"
        return path


class _Refused(Exception):
    pass


def incoming() -> Path:
    """Where the browser keeps unfinished downloads. It empties the folder itself."""
    return state_dir() / "downloads" / ".incoming"


class GuardProxy:
    """Listens on loopback. `refusals` are the last connections that were not made: the host, and why."""

    def __init__(self, guard: Guard) -> None:
        self.guard = guard
        self._proxy, self._url = Proxy(self, is_open=True), ""
        self.refusals: deque[tuple[str, ToolError]] = deque(maxlen=50)

    async def address(self) -> str:
        """Where it listens, from now on."""
        self._url = self._url or await self._proxy.start()
        return self._url

    async def close(self) -> None:
        await self._proxy.close()

    async def addresses(self, host: str, port: int, _: Program) -> list[str]:
        try:
            return await self.guard.addresses(host, port)
        except ToolError as error:
            self.refusals.append((host, error))
            raise

    async def misplaced(self, *_: object) -> None:
        """A browser has no keys."""

    def refuse(self, why: str) -> None:
        """Nor has it an authority that it could distrust."""


def target_host(url: str) -> str:
    return urlsplit(url).hostname or ""

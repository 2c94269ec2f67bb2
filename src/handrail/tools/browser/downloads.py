"""The files that a task's pages download."""

from __future__ import annotations

import asyncio
import contextlib
import re
from pathlib import Path
from typing import Any

from playwright.async_api import Download, Error

from ...config.paths import state_dir
from ...types import JsonDict

_SECONDS = 300.0
_POLL_SECONDS = 0.1
_WAIT_SECONDS = 10.0
_MAX_AT_ONCE = 5


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
            async with asyncio.timeout(_SECONDS):
                path = self._place(download.suggested_filename)
                await self._saved(download, path)
            self._news.append({**about, "file": str(path), "bytes": path.stat().st_size})
        except (_Refused, Error, TimeoutError, OSError) as error:
            why = f"took longer than {_SECONDS:g} s" if isinstance(error, TimeoutError) else str(error)
            with contextlib.suppress(Error):
                await download.cancel()
            self._news.append({**about, "error": why[:300]})

    async def _saved(self, download: Download, path: Path) -> None:
        """Check the size while the browser writes the file."""
        saving: asyncio.Task[Any] = asyncio.ensure_future(download.save_as(path))
        try:
            while not saving.done():
                await asyncio.wait({saving}, timeout=_POLL_SECONDS)
                self._check(*incoming_files())
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


def incoming_files() -> list[Path]:
    folder = incoming()
    return list(folder.iterdir()) if folder.is_dir() else []

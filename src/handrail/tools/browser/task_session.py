"""The session of a call's task, in the runtime's browser, which starts at its first use and closes with the runtime."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from ...base.workers import pool
from ...environments.task_settings import DEFAULT_TASK
from ...errors import HandrailError, ToolFailed
from ...files.task_arguments import written_files_of
from ...types import JsonDict, Resources, ToolContext
from . import actions
from .browsers import Browsers
from .session import Session

T = TypeVar("T")
_TASK_DOWNLOADS = "/tmp/downloads"


class Shot(NamedTuple):
    """A picture of a page (PNG), and which page it was."""

    png: bytes
    url: str
    title: str


async def use(context: ToolContext | None, work: Callable[[Session], Awaitable[T]], *, start: bool = False) -> T:
    """Run `work` with the session of the call's task; `start` opens one if there is none."""
    if context is None or context.environments is None:
        raise ToolFailed("this runtime has no task environments, and so no browser")
    environments = context.environments
    browsers: Browsers = environments.companion(Browsers, lambda: Browsers(context.config))
    return await browsers.use(context.task_id or DEFAULT_TASK, work, start=start)


def resources(args: JsonDict, context: ToolContext | None = None) -> Resources:  # noqa: ARG001  every call uses the same page
    """A task's calls run one after another; other tasks have pages of their own."""
    task = (context.task_id if context is not None else None) or DEFAULT_TASK
    return Resources(writes=(f"browser of {task.replace('/', '_')}",))


async def with_reachable_downloads(context: ToolContext | None, facts: JsonDict) -> JsonDict:
    """The facts, with downloads copied to where the task's commands and file tools find them: its container or machine."""
    environments = context.environments if context is not None else None
    files = [one for one in facts.get("downloads", ()) if "file" in one]
    if context is None or environments is None or not files or environments.has_host_paths(context.task_id):
        return facts
    for one in files:
        try:
            one["file"] = await asyncio.wrap_future(pool.submit(_copy, context, Path(one["file"])))
        except (HandrailError, OSError) as error:
            one["error"] = f"it is on the runtime's machine and could not be copied to where the task works: {error}"
    return facts


def _copy(context: ToolContext, file: Path) -> str:
    path = f"{_TASK_DOWNLOADS}/{file.name}"
    written_files_of(context).write(path, file.read_bytes())
    return path


async def screenshot(context: ToolContext | None, *, full_page: bool = False) -> Shot:
    """A picture of the page that the task's browser shows."""

    async def work(session: Session) -> Shot:
        png = await actions.screenshot(session, full_page=full_page)
        return Shot(png, session.page.url, await session.page.title())

    return await use(context, work)

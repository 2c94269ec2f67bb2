"""How a tool gets at its task's session: the runtime's browser, made at its first use and closed with the runtime."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ...errors import HandrailError, ToolFailed
from ...types import JsonDict, Resources, ToolContext

if TYPE_CHECKING:
    from .session import Session

T = TypeVar("T")
_DOWNLOADS_ELSEWHERE = "/tmp/downloads"


class Shot(NamedTuple):
    """A picture of a page (PNG), and which page it was."""

    png: bytes
    url: str
    title: str


async def use(context: ToolContext | None, work: Callable[[Session], Awaitable[T]], *, start: bool = False) -> T:
    """Do something with the session of the call's task; `start` opens one where there is none."""
    if context is None or context.environments is None:
        raise ToolFailed("this runtime keeps no tasks, so no browser either")
    from ...environments.task_settings import DEFAULT_TASK
    from .browsers import Browsers

    environments = context.environments
    browsers: Browsers = environments.companion(Browsers, lambda: Browsers(context.config))
    return await browsers.use(context.task_id or DEFAULT_TASK, work, start=start)


def the_page(context: ToolContext | None) -> Resources:
    """A task's calls come one after another; other tasks have pages of their own."""
    task = (context.task_id if context is not None else None) or "default"
    return Resources(writes=(f"browser of {task.replace('/', '_')}",))


async def with_files_in_reach(context: ToolContext | None, facts: JsonDict) -> JsonDict:
    """What was downloaded, also put where the task's commands and file tools find it: in its container, on its machine."""
    environments = context.environments if context is not None else None
    files = [one for one in facts.get("downloads", ()) if "file" in one]
    if context is None or environments is None or not files or environments.has_host_paths(context.task_id):
        return facts
    import asyncio

    from ...base.workers import pool

    for one in files:
        try:
            one["file"] = await asyncio.wrap_future(pool.submit(_put_there, context, Path(one["file"])))
        except (HandrailError, OSError) as error:
            one["error"] = f"it is on the machine of the runtime, and could not be put where the task works: {error}"
    return facts


def _put_there(context: ToolContext, file: Path) -> str:
    from ...files.task_arguments import files_of

    path = f"{_DOWNLOADS_ELSEWHERE}/{file.name}"
    files_of(context).write(path, file.read_bytes())
    return path


async def screenshot(context: ToolContext | None, *, full_page: bool = False) -> Shot:
    """The page that the task's browser shows, for tools that look at it."""
    from .actions import screenshot as take

    async def work(session: Session) -> Shot:
        png = await take(session, full_page=full_page)
        return Shot(png, session.page.url, await session.page.title())

    return await use(context, work)

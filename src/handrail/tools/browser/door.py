"""How a tool gets at its task's session: the runtime's browser, made at its first use and closed with the runtime."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ...errors import ToolFailed
from ...types import ToolContext

if TYPE_CHECKING:
    from .session import Session

T = TypeVar("T")


class Shot(NamedTuple):
    """A picture of a page (PNG), and which page it was."""

    png: bytes
    url: str
    title: str


async def use(context: ToolContext | None, work: Callable[[Session], Awaitable[T]], *, start: bool = False) -> T:
    """Do something with the session of the call's task; `start` opens one where there is none."""
    if context is None or context.environments is None:
        raise ToolFailed("this runtime keeps no tasks, so no browser either")
    from ..environments.task_settings import DEFAULT_TASK
    from .browsers import Browsers

    environments = context.environments
    browsers = environments.companion(Browsers, lambda: Browsers(environments.config))
    return await browsers.use(context.task_id or DEFAULT_TASK, work, start=start)


async def screenshot(context: ToolContext | None, *, full_page: bool = False) -> Shot:
    """The page that the task's browser shows, for tools that look at it."""
    from .actions import screenshot as take

    async def work(session: Session) -> Shot:
        png = await take(session, full_page=full_page)
        return Shot(png, session.page.url, await session.page.title())

    return await use(context, work)

"""Run calls of the `browser_*` tools."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from ...base.workers import pool
from ...core.outcome import Outcome, tool_result
from ...environments.backend_table import DEFAULT_TASK
from ...errors import HandrailError, InvalidArguments, ToolFailed
from ...files.task_arguments import text_argument, written_files_of
from ...media.images import analyze, prepared
from ...net.fetch import NOTE, clean
from ...net.url_guard import without_login
from ...types import JsonDict, Resources, ToolContext
from . import actions
from .browsers import Browsers
from .session import Session

T = TypeVar("T")
_TASK_DOWNLOADS = "/tmp/downloads"


async def use(context: ToolContext, work: Callable[[Session], Awaitable[T]], *, start: bool = False) -> T:
    """Run `work` with the session of the call's task; `start` opens one if there is none."""
    if context.environments is None:
        raise ToolFailed("this runtime has no task environments, and so no browser")
    environments = context.environments
    browsers: Browsers = environments.companion(Browsers, lambda: Browsers(context.config))

    async def begin(session: Session) -> T:
        session.hosts.begin(context)
        return await work(session)

    return await browsers.use(context.task_id or DEFAULT_TASK, begin, start=start)


def resources(args: JsonDict, context: ToolContext) -> Resources:  # noqa: ARG001  every call uses the same page
    """A task's calls run one after another; other tasks have pages of their own."""
    return Resources(writes=(f"browser of {(context.task_id or DEFAULT_TASK).replace('/', '_')}",))


async def with_reachable_downloads(context: ToolContext, facts: JsonDict) -> JsonDict:
    """The facts, with downloads copied to where the task's commands and file tools find them: its container or machine."""
    environments = context.environments
    files = [one for one in facts.get("downloads", ()) if "file" in one]
    if environments is None or not files or environments.has_host_paths(context.task_id):
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


async def browser_navigate(args: JsonDict, *, context: ToolContext, **_: object) -> str:
    url = args["url"]
    context.progress(f"opening {without_login(url)[:200]}")
    return await _run(context, lambda session: actions.navigate(session, url), start=True)


async def browser_dialog(args: JsonDict, *, context: ToolContext, **_: object) -> str:
    accept, text = args["action"] == "accept", args.get("prompt_text")
    if text is not None and not accept:
        raise InvalidArguments("prompt_text goes with accept", argument="prompt_text")
    return await _run(context, lambda session: actions.answer_dialog(session, accept=accept, text=text))


async def browser_vision(args: JsonDict, *, context: ToolContext, **_: object) -> Outcome:
    question = text_argument(args, "question")

    async def work(session: Session) -> tuple[bytes, str, str]:
        png = await actions.screenshot(session, full_page=args.get("full_page", False))
        return png, session.page.url, await session.page.title()

    png, url, title = await use(context, work)
    picture = await prepared(png, context.config, what="the picture of the page")
    return await analyze(picture, question, context, url=url, title=clean(title))


def _handler(action: Callable[[Session, JsonDict], Awaitable[JsonDict]]) -> Callable[..., Awaitable[str]]:
    async def handler(args: JsonDict, *, context: ToolContext, **_: object) -> str:
        return await _run(context, lambda session: action(session, args))

    return handler


async def _run(context: ToolContext, action: Callable[[Session], Awaitable[JsonDict]], *, start: bool = False) -> str:
    facts = await with_reachable_downloads(context, await use(context, action, start=start))
    return tool_result({"note": NOTE, **clean(facts)})


browser_snapshot = _handler(
    lambda session, args: actions.snapshot(session, full=args.get("full", False), tab=args.get("tab"))
)
browser_click = _handler(lambda session, args: actions.click(session, args["ref"]))
browser_type = _handler(
    lambda session, args: actions.type_text(session, args["ref"], args["text"], submit=args.get("submit", False))
)
browser_press = _handler(lambda session, args: actions.press(session, args["key"]))
browser_scroll = _handler(lambda session, args: actions.scroll(session, args["direction"]))
browser_back = _handler(lambda session, _: actions.back(session))
browser_get_images = _handler(lambda session, _: actions.images(session))
browser_console = _handler(
    lambda session, args: actions.console(session, clear=args.get("clear", False), expression=args.get("expression"))
)
browser_cdp = _handler(lambda session, args: actions.send(session, args["method"], args.get("params", {})))

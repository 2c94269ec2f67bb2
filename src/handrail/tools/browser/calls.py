"""Run calls of the `browser_*` tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ...core.outcome import Outcome, tool_result
from ...errors import InvalidArguments
from ...files.task_arguments import text_argument
from ...media.images import analyze, prepared
from ...net.untrusted import NOTE, clean
from ...net.url_guard import without_login
from ...types import JsonDict, ToolContext
from . import actions
from .session import Session
from .task_session import screenshot, use, with_reachable_downloads


async def browser_navigate(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    url = args["url"]
    if context is not None:
        context.progress(f"opening {without_login(url)[:200]}")
    return await _run(context, lambda session: actions.navigate(session, url), start=True)


async def browser_dialog(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    accept, text = args["action"] == "accept", args.get("prompt_text")
    if text is not None and not accept:
        raise InvalidArguments("prompt_text goes with accept", argument="prompt_text")
    return await _run(context, lambda session: actions.answer_dialog(session, accept=accept, text=text))


async def browser_vision(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> Outcome:
    context, question = context or ToolContext(), text_argument(args, "question")
    shot = await screenshot(context, full_page=args.get("full_page", False))
    picture = await prepared(shot.png, context.config, what="the picture of the page")
    return await analyze(picture, question, context, url=shot.url, title=clean(shot.title))


def _handler(action: Callable[[Session, JsonDict], Awaitable[JsonDict]]) -> Callable[..., Awaitable[str]]:
    async def handler(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
        return await _run(context, lambda session: action(session, args))

    return handler


async def _run(
    context: ToolContext | None, action: Callable[[Session], Awaitable[JsonDict]], *, start: bool = False
) -> str:
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

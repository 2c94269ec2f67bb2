"""`browser_*`: drive a browser. Each task has pages of its own, which stay between calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...core.availability import usable_unless
from ...core.builtin import registry
from ...core.registry import tool_result
from ...errors import InvalidArguments
from ...types import JsonDict, Resources, ToolContext, Unavailable

if TYPE_CHECKING:
    from .actions import Work

_SECONDS = 120.0
_REF: JsonDict = {"type": "string", "description": "Which element, by its ref in the snapshot: e12."}


async def _answer(context: ToolContext | None, work: Work, *, start: bool = False) -> str:
    from ...net.untrusted import NOTE, clean
    from .task_session import use, with_files_in_reach

    facts = await with_files_in_reach(context, await use(context, work, start=start))
    return tool_result({"note": NOTE, **clean(facts)})


async def browser_navigate(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    from . import actions

    if context is not None:
        from ...net.url_guard import without_login

        context.progress(f"opening {without_login(args['url'])[:200]}")
    return await _answer(context, lambda session: actions.navigate(session, args["url"]), start=True)


async def browser_snapshot(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    from . import actions

    return await _answer(
        context, lambda session: actions.look(session, full=args.get("full", False), tab=args.get("tab"))
    )


async def browser_click(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    from . import actions

    return await _answer(context, lambda session: actions.click(session, args["ref"]))


async def browser_type(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    from . import actions

    return await _answer(
        context,
        lambda session: actions.type_text(session, args["ref"], args["text"], submit=args.get("submit", False)),
    )


async def browser_scroll(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    from . import actions

    return await _answer(context, lambda session: actions.scroll(session, args["direction"]))


async def browser_back(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:  # noqa: ARG001
    from . import actions

    return await _answer(context, actions.back)


async def browser_press(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    from . import actions

    return await _answer(context, lambda session: actions.press(session, args["key"]))


async def browser_get_images(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:  # noqa: ARG001
    from . import actions

    return await _answer(context, actions.images)


async def browser_console(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    from . import actions

    return await _answer(
        context,
        lambda session: actions.console(session, clear=args.get("clear", False), expression=args.get("expression")),
    )


async def browser_dialog(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    from . import actions

    accept, text = args["action"] == "accept", args.get("prompt_text")
    if text is not None and not accept:
        raise InvalidArguments("prompt_text goes with accept", argument="prompt_text")
    return await _answer(context, lambda session: actions.answer_dialog(session, accept=accept, text=text))


async def browser_cdp(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    from . import devtools

    return await _answer(context, lambda session: devtools.send(session, args["method"], args.get("params", {})))


def _resources(args: JsonDict, context: ToolContext | None = None) -> Resources:  # noqa: ARG001  every call means the same page
    from .task_session import the_page

    return the_page(context)


def _check() -> Unavailable | bool:
    from ...config import load_config
    from .installed_browsers import check

    return usable_unless(check(load_config().browser))


def _common(
    handler: Callable[..., Any], description: str, required: tuple[str, ...] = (), /, **properties: JsonDict
) -> JsonDict:
    """What `register` is given for each of the family."""
    return {
        "name": handler.__name__,
        "toolset": "browser",
        "schema": {
            "description": description,
            "parameters": {"type": "object", "properties": properties, "required": list(required)},
        },
        "handler": handler,
        "is_async": True,
        "check_fn": _check,
        "timeout": _SECONDS,
        "resources": _resources,
    }


registry.register(
    **_common(
        browser_navigate,
        "Open a page in the browser; gives its `snapshot`: a tree of what it shows, each element with a ref to act on. Pages "
        "stay open between calls. Only public addresses. To find pages `web_search` is better. To only read one "
        "`web_extract` is quicker.",
        ("url",),
        url={"type": "string", "description": "The address, in full."},
    ),
    emoji="🌐",
)
registry.register(
    **_common(
        browser_snapshot,
        "What the page shows now. Of a long page only what one can act on, unless full.",
        full={"type": "boolean", "default": False, "description": "Show all text, too."},
        tab={"type": "integer", "minimum": 1, "description": "Go to this tab first."},
    ),
    emoji="📸",
)
registry.register(**_common(browser_click, "Click an element of the page.", ("ref",), ref=_REF), emoji="👆")
registry.register(
    **_common(
        browser_type,
        "Fill in a field of the page (what was in it is replaced), or choose from a list by the choice's text.",
        ("ref", "text"),
        ref=_REF,
        text={"type": "string", "description": "What to type or choose."},
        submit={"type": "boolean", "default": False, "description": "Press Enter afterwards."},
    ),
    emoji="⌨️",
)
registry.register(
    **_common(
        browser_scroll,
        "Scroll the page by a screen; pages that load more as one scrolls do so.",
        ("direction",),
        direction={"type": "string", "enum": ["up", "down"]},
    ),
    emoji="📜",
)
registry.register(**_common(browser_back, "Go back to the page before, or close a tab that has none."), emoji="◀️")
registry.register(
    **_common(
        browser_press,
        "Press a key on the page.",
        ("key",),
        key={"type": "string", "description": "Such as Enter, Tab, Escape, ArrowDown, PageDown, Control+a."},
    ),
    emoji="🎹",
)
registry.register(**_common(browser_get_images, "List the images of the page, with address, text and size."), emoji="🖼️")
registry.register(
    **_common(
        browser_console,
        "What the page wrote to its console, errors too; with an expression also what that gives.",
        expression={"type": "string", "description": "JavaScript to evaluate in the page, such as document.title."},
        clear={"type": "boolean", "default": False, "description": "Forget the messages afterwards."},
    ),
    emoji="🧾",
)
registry.register(
    **_common(
        browser_dialog,
        "Answer the dialog that the page shows (alert, confirm, prompt); until then it does nothing else.",
        ("action",),
        action={"type": "string", "enum": ["accept", "dismiss"]},
        prompt_text={"type": "string", "description": "The answer to a prompt."},
    ),
    emoji="💬",
)
registry.register(
    **_common(
        browser_cdp,
        "Send a command of the Chrome DevTools Protocol to the page, for what no other browser tool does.",
        ("method",),
        method={"type": "string", "description": "Such as Emulation.setDeviceMetricsOverride."},
        params={"type": "object", "description": "The command's parameters."},
    ),
    emoji="🔧",
)

"""The tool `browser_vision`: look at the page that the browser shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.availability import first_lack, usable_unless
from ...core.builtin import registry
from ...types import JsonDict, Resources, Unavailable

if TYPE_CHECKING:
    from ...core.outcome import Outcome
    from ...types import ToolContext

SCHEMA: JsonDict = {
    "description": "Take a picture of the page in the browser and answer a question about what it looks like.",
    "parameters": {
        "type": "object",
        "properties": {
            "question": {"type": "string", "description": "What to find out."},
            "full_page": {
                "type": "boolean",
                "default": False,
                "description": "All of the page, not only what is seen.",
            },
        },
        "required": ["question"],
    },
}


async def browser_vision(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> Outcome:
    from ...core.call_config import config_of
    from ...files.task_arguments import text_argument
    from ...media.image_analysis import look
    from ...media.images import prepared
    from ...net.untrusted import clean
    from .task_session import screenshot

    config, question = config_of(context), text_argument(args, "question")
    shot = await screenshot(context, full_page=args.get("full_page", False))
    picture = await prepared(shot.png, config, what="the picture of the page")
    told = {"url": shot.url, "title": clean(shot.title)}
    return await look(picture, question, config=config, context=context, **told)


def _check() -> Unavailable | bool:
    from ...config import load_config
    from ...media.requirements import seeing
    from .installed_browsers import check as check_browser

    config = load_config()
    return usable_unless(first_lack(check_browser(config.browser), seeing(config)))


def _resources(args: JsonDict, context: ToolContext | None = None) -> Resources:  # noqa: ARG001  every call means the same page
    from .task_session import the_page

    return the_page(context)


registry.register(
    name="browser_vision",
    toolset="browser",
    schema=SCHEMA,
    handler=browser_vision,
    check_fn=_check,
    is_async=True,
    emoji="🔭",
    timeout=300,
    resources=_resources,
)

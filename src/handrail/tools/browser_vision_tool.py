"""The tool `browser_vision`: look at the page that the browser shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..types import JsonDict, Resources
from .availability import first_lack
from .registry import registry

if TYPE_CHECKING:
    from ..types import ToolContext
    from .outcome import Outcome

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
    from .browser.door import screenshot
    from .files.task import text_argument
    from .media.images import prepared
    from .media.looking import look
    from .web.settings import config_of

    config, question = config_of(context), text_argument(args, "question")
    shot = await screenshot(context, full_page=args.get("full_page", False))
    picture = await prepared(shot.png, config, what="the picture of the page")
    return await look(picture, question, config=config, context=context, url=shot.url, title=shot.title)


def _check() -> object:
    from ..config import load_config
    from .browser.finding import check as check_browser
    from .media.needs import seeing

    config = load_config()
    why = first_lack(check_browser(config.browser), seeing(config))
    return True if why is None else why


def _resources(args: JsonDict, context: ToolContext | None = None) -> Resources:  # noqa: ARG001  every call means the same page
    task = (context.task_id if context is not None else None) or "default"
    return Resources(writes=(f"browser of {task.replace('/', '_')}",))


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

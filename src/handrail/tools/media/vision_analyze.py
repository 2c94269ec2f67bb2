"""The tool `vision_analyze`: look at an image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.availability import usable_unless
from ...core.builtin import registry
from ...types import JsonDict, Resources

if TYPE_CHECKING:
    from ...core.outcome import Outcome
    from ...types import ToolContext, Unavailable

SCHEMA: JsonDict = {
    "description": "Look at an image and answer a question about it.",
    "parameters": {
        "type": "object",
        "properties": {
            "image_url": {"type": "string", "description": "A path, an http(s) URL, or a data: URL."},
            "question": {"type": "string", "description": "What to find out. Without it: describe the image."},
        },
        "required": ["image_url"],
    },
}


async def vision_analyze(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> Outcome:
    from ...core.call_config import config_of
    from ...files.task_arguments import text_argument
    from ...media.image_analysis import look
    from ...media.images import picture_at

    config = config_of(context)
    question = text_argument(args, "question", "Describe this image in detail, with all text in it.")
    picture = await picture_at(text_argument(args, "image_url"), config, context)
    return await look(picture, question, config=config, context=context)


def _check() -> Unavailable | bool:
    from ...config import load_config
    from ...media.requirements import seeing

    return usable_unless(seeing(load_config()))


def _resources(args: JsonDict, context: ToolContext | None = None) -> Resources:
    from ...files.task_arguments import read_name

    return Resources(reads=(read_name(args.get("image_url"), context),))


registry.register(
    name="vision_analyze",
    toolset="vision",
    schema=SCHEMA,
    handler=vision_analyze,
    check_fn=_check,
    is_async=True,
    emoji="👁️",
    timeout=300,
    read_only=True,
    resources=_resources,
)

"""The tool `image_generate`: make an image from words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..types import JsonDict
from .registry import registry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..protocols import Action
    from ..types import Resources, ToolContext

SCHEMA: JsonDict = {
    "description": "Make an image from a description and save it.",
    "parameters": {
        "type": "object",
        "properties": {
            "prompt": {"type": "string", "minLength": 1, "description": "What the image shows, and in which style."},
            "aspect_ratio": {"type": "string", "enum": ["square", "landscape", "portrait"], "default": "square"},
            "output_path": {"type": "string", "description": "Where to save it; a new .png in the working directory."},
        },
        "required": ["prompt"],
    },
}


async def image_generate(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    from .media.drawing import draw
    from .web.settings import config_of

    return await draw(args, _path(args), config=config_of(context), context=context)


def _path(args: JsonDict) -> str:
    from .media.saving import output_path

    return output_path(args, "image", ".png", args.get("prompt"), args.get("aspect_ratio"))


def _check() -> object:
    from ..config import load_config
    from .media.needs import drawing

    why = drawing(load_config())
    return True if why is None else why


def _resources(args: JsonDict, context: ToolContext | None = None) -> Resources:
    from .media.saving import writes

    return writes(_path(args), context)


def _actions(args: JsonDict, context: ToolContext) -> Sequence[Action]:
    from .media.saving import actions

    return actions(_path(args), context)


registry.register(
    name="image_generate",
    toolset="image_gen",
    schema=SCHEMA,
    handler=image_generate,
    check_fn=_check,
    is_async=True,
    emoji="🎨",
    timeout=600,
    resources=_resources,
    actions=_actions,
)

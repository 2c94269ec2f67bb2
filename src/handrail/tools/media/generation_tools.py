"""The tools that make a file from words: `image_generate` and `text_to_speech`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...core.availability import usable_unless
from ...core.builtin import registry
from ...types import JsonDict

if TYPE_CHECKING:
    from ...protocols import Action
    from ...types import Resources, ToolContext, Unavailable

IMAGE: JsonDict = {
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
SPEECH: JsonDict = {
    "description": "Turn a text into speech and save it as a sound file.",
    "parameters": {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "What is to be said."},
            "output_path": {"type": "string", "description": "Where to save it; a new .wav in the working directory."},
        },
        "required": ["text"],
    },
}


async def image_generate(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    from ...core.call_config import config_of
    from .image_generation import draw

    return await draw(args, _image_path(args), config=config_of(context), context=context)


async def text_to_speech(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    from ...core.call_config import config_of
    from .speech import speak

    return await speak(args, _speech_path(args), config=config_of(context), context=context)


def _image_path(args: JsonDict) -> str:
    from .output_files import output_path

    return output_path(args, "image", ".png", args.get("prompt"), args.get("aspect_ratio"))


def _speech_path(args: JsonDict) -> str:
    from .output_files import output_path

    return output_path(args, "speech", ".wav", args.get("text"))


def _can_draw() -> Unavailable | bool:
    from ...config import load_config
    from ...media.requirements import drawing

    return usable_unless(drawing(load_config()))


def _can_speak() -> Unavailable | bool:
    from ...config import load_config
    from ...media.requirements import speaking

    return usable_unless(speaking(load_config()))


def _writes(path: Callable[[JsonDict], str]) -> Callable[..., Resources]:
    def resources(args: JsonDict, context: ToolContext | None = None) -> Resources:
        from .output_files import writes

        return writes(path(args), context)

    return resources


def _asks_for(path: Callable[[JsonDict], str]) -> Callable[[JsonDict, ToolContext], Sequence[Action]]:
    def actions(args: JsonDict, context: ToolContext) -> Sequence[Action]:
        from . import output_files

        return output_files.actions(path(args), context)

    return actions


registry.register(
    name="image_generate",
    toolset="image_gen",
    schema=IMAGE,
    handler=image_generate,
    check_fn=_can_draw,
    is_async=True,
    emoji="🎨",
    timeout=600,
    resources=_writes(_image_path),
    actions=_asks_for(_image_path),
)
registry.register(
    name="text_to_speech",
    toolset="tts",
    schema=SPEECH,
    handler=text_to_speech,
    check_fn=_can_speak,
    is_async=True,
    emoji="🔊",
    timeout=300,
    resources=_writes(_speech_path),
    actions=_asks_for(_speech_path),
)

"""The tool `text_to_speech`: say a text, as a sound file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..types import JsonDict
from .registry import registry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..protocols import Action
    from ..types import Resources, ToolContext

SCHEMA: JsonDict = {
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


async def text_to_speech(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    from .media.speaking import speak
    from .web.settings import config_of

    return await speak(args, _path(args), config=config_of(context), context=context)


def _path(args: JsonDict) -> str:
    from .media.saving import output_path

    return output_path(args, "speech", ".wav", args.get("text"))


def _check() -> object:
    from ..config import load_config
    from .media.needs import speaking

    why = speaking(load_config())
    return True if why is None else why


def _resources(args: JsonDict, context: ToolContext | None = None) -> Resources:
    from .media.saving import writes

    return writes(_path(args), context)


def _actions(args: JsonDict, context: ToolContext) -> Sequence[Action]:
    from .media.saving import actions

    return actions(_path(args), context)


registry.register(
    name="text_to_speech",
    toolset="tts",
    schema=SCHEMA,
    handler=text_to_speech,
    check_fn=_check,
    is_async=True,
    emoji="🔊",
    timeout=300,
    resources=_resources,
    actions=_actions,
)

"""The tool `mixture_of_agents`: several models answer, one merges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.availability import usable_unless
from ...core.builtin import registry
from ...types import JsonDict

if TYPE_CHECKING:
    from ...types import ToolContext, Unavailable

SCHEMA: JsonDict = {
    "description": (
        "Put a hard question to several models at once and get one merged answer. Slow and costly: for what one model alone "
        "gets wrong."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "user_prompt": {
                "type": "string",
                "minLength": 1,
                "description": "The question, with all that is needed to answer it: they see nothing else.",
            }
        },
        "required": ["user_prompt"],
    },
}


async def mixture_of_agents(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    from ...core.call_config import config_of
    from ...files.task_arguments import text_argument
    from .mixture import mix

    return await mix(text_argument(args, "user_prompt"), config=config_of(context), context=context)


def _check() -> Unavailable | bool:
    from ...config import load_config
    from ...media.requirements import mixing

    return usable_unless(mixing(load_config()))


registry.register(
    name="mixture_of_agents",
    toolset="moa",
    schema=SCHEMA,
    handler=mixture_of_agents,
    check_fn=_check,
    is_async=True,
    emoji="🧠",
    timeout=900,
    read_only=True,
)

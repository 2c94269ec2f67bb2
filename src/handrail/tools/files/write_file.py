"""The tool `write_file`: the whole content of a file, at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.builtin import registry
from ...types import JsonDict, Resources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...protocols import Action
    from ...types import ToolContext

SCHEMA: JsonDict = {
    "description": (
        "Write a whole file, replacing what was there; missing folders are made. An existing file keeps its mode, "
        "its encoding and its CRLF line ends. Refused when the file changed since you read it."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Absolute, relative to the working directory, or from ~."},
            "content": {"type": "string", "description": "The complete new content."},
        },
        "required": ["path", "content"],
    },
}


def write_file(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    from .write_call import write

    return write(args, context)


def _resources(args: JsonDict, context: ToolContext | None = None) -> Resources:
    from ...files.task_arguments import written_name

    return Resources(writes=(written_name(args.get("path"), context),))


def _actions(args: JsonDict, context: ToolContext) -> Sequence[Action]:
    from ...files.task_arguments import path_argument, write_actions

    return write_actions([path_argument(args)], context)


registry.register(
    name="write_file",
    toolset="file",
    schema=SCHEMA,
    handler=write_file,
    emoji="✍️",
    resources=_resources,
    actions=_actions,
)

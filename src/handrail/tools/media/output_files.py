"""Where a tool puts the file that it makes: where the model says, or under a name made of what was asked for."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from ...base.safe_text import well_formed
from ...files.task_arguments import files_of, path_argument, write_actions, written_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...protocols import Action
    from ...types import JsonDict, Resources, ToolContext


def output_path(args: JsonDict, prefix: str, suffix: str, *words: object) -> str:
    """The same for the gate and for the tool: it depends on the arguments alone."""
    if args.get("output_path"):
        return path_argument(args, "output_path")
    digest = hashlib.sha256("\0".join(map(str, words)).encode("utf-8", "replace")).hexdigest()
    return f"{prefix}-{digest[:8]}{suffix}"


def save(data: bytes, path: str, context: ToolContext | None) -> str:
    """Write it into the task's files. The path as it really is."""
    files = files_of(context)
    resolved = files.resolve(path)
    files.write(resolved, data)
    return well_formed(resolved)


def writes(path: str, context: ToolContext | None) -> Resources:
    from ...types import Resources

    return Resources(writes=(written_name(path, context),))


def actions(path: str, context: ToolContext) -> Sequence[Action]:
    return write_actions([path], context)

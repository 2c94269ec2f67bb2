"""Where a tool writes its file: where the model says, or under a name derived from the arguments."""

from __future__ import annotations

import hashlib

from ...base.safe_text import well_formed
from ...files.task_arguments import judged_path, path_argument, written_files_of
from ...types import JsonDict, ToolContext


def output_path(args: JsonDict, prefix: str, suffix: str, *words: object) -> str:
    """Depends on the arguments alone, so it is the same for the gate and for the tool."""
    if args.get("output_path"):
        return path_argument(args, "output_path")
    digest = hashlib.sha256("\0".join(map(str, words)).encode("utf-8", "replace")).hexdigest()
    return f"{prefix}-{digest[:8]}{suffix}"


def save(data: bytes, path: str, context: ToolContext | None) -> str:
    """Write into the task's files and return the resolved path."""
    resolved = judged_path(path, context)
    written_files_of(context).write(resolved, data)
    return well_formed(resolved)

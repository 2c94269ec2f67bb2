"""Read a patch of either format, and name the files it touches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....errors import InvalidArguments, ToolError
from .unified import is_unified, parse_unified
from .v4a import is_v4a, parse_v4a

if TYPE_CHECKING:
    from .changes import Change


def parse_patch(text: str, *, path: str | None = None) -> list[Change]:
    """The changes in order. `path` names the file of a patch that names none. Raises InvalidArguments."""
    text = _unwrapped(text)
    if is_v4a(text):
        return parse_v4a(text)
    if is_unified(text):
        return parse_unified(text, path=path)
    if path is not None and any(line[:1] in ("+", "-") for line in text.split("\n")):
        return parse_v4a(f"*** Update File: {path}\n{text}")
    raise InvalidArguments(
        "patch is neither a V4A patch (`*** Begin Patch`, `*** Update File: <path>`, hunks, `*** End Patch`) "
        "nor a unified diff (`--- a/<path>`, `+++ b/<path>`, `@@ -1,3 +1,4 @@`)"
    )


def paths_of(text: str, *, path: str | None = None) -> list[str] | None:
    """Every path that a patch reads or writes; None when it cannot be understood."""
    try:
        changes = parse_patch(text, path=path)
    except ToolError:
        return None
    return [name for change in changes for name in (change.path, change.move_to) if name]


def _unwrapped(text: str) -> str:
    """Without what a transport or a chat puts around it: a code fence, CRLF on every line."""
    lines = text.split("\n")
    if len(lines) > 1 and all(line.endswith("\r") for line in lines[:-1]):
        lines = [line.removesuffix("\r") for line in lines]
    while lines and not lines[0].strip():
        lines.pop(0)
    if lines and lines[0].startswith("```"):
        closing = next((at for at in range(len(lines) - 1, 0, -1) if lines[at].strip() == "```"), len(lines))
        lines = lines[1:closing]
    return "\n".join(lines)

"""Read a file that is not text, whole, for someone who sends it on or looks at it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ToolFailed
from .content import missing
from .failures import shown, size_text
from .file_kinds import special_kind

if TYPE_CHECKING:
    from ..protocols import Files


def read_whole(files: Files, path: str, *, max_bytes: int) -> bytes:
    """Raises ToolFailed for what is not there, no regular file, or larger than that."""
    resolved = files.resolve(path)
    found = files.stat(resolved)
    if found is None:
        raise missing(files, path)
    kind = "a folder" if found.is_dir else special_kind(found.mode)
    if kind is not None:
        raise ToolFailed(f"{shown(path)} is {kind}, not a regular file", path=shown(resolved))
    pieces: list[bytes] = []
    size = 0
    while piece := files.read(resolved, offset=size, max_bytes=max_bytes + 1 - size):
        pieces.append(piece)
        size += len(piece)
        if size > max_bytes:
            raise ToolFailed(
                f"{shown(path)} is {size_text(max(size, found.size))}; at most {size_text(max_bytes)} are taken",
                size=found.size,
            )
    return b"".join(pieces)

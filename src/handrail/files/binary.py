"""Read a complete file as bytes, to send or to look at."""

from __future__ import annotations

from ..errors import FileTooLarge, IsFolder, ToolFailed
from ..protocols import Files
from .content import missing
from .failures import shown, size_text
from .file_kinds import special_kind


def read_bytes(files: Files, path: str, *, max_bytes: int) -> bytes:
    """Raises ToolFailed for a file that is missing, not regular, or larger than `max_bytes`."""
    resolved = files.resolve(path)
    found = files.stat(resolved)
    if found is None:
        raise missing(files, path)
    kind = "a folder" if found.is_dir else special_kind(found.mode)
    if kind is not None:
        raise (IsFolder if found.is_dir else ToolFailed)(
            f"{shown(path)} is {kind}, not a regular file", path=shown(resolved)
        )
    pieces: list[bytes] = []
    size = 0
    while piece := files.read(resolved, offset=size, max_bytes=max_bytes + 1 - size):
        pieces.append(piece)
        size += len(piece)
        if size > max_bytes:
            raise FileTooLarge(
                f"{shown(path)} is {size_text(max(size, found.size))}; the limit is {size_text(max_bytes)}",
                size=found.size,
            )
    return b"".join(pieces)

"""Errors of the operating system, in words that a model can act on."""

from __future__ import annotations

import errno

from ..base.safe_text import well_formed
from ..errors import FileDenied, FileMissing, FileTooLarge, IsFolder, ToolError, ToolFailed

_REASONS = {
    errno.ENOENT: "there is no such file or folder",
    errno.ENOTDIR: "a part of its path is a file, not a folder",
    errno.EISDIR: "it is a folder",
    errno.EACCES: "permission denied",
    errno.EPERM: "the operation is not permitted",
    errno.EROFS: "the file system is read-only",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than the system allows",
    errno.ELOOP: "its links lead in a circle",
    errno.ENAMETOOLONG: "the name is too long for the file system",
    errno.ENOTEMPTY: "the folder is not empty",
    errno.EBUSY: "it is in use (a mount point can be changed in place only)",
    errno.EAGAIN: "reading it would wait for data",
}


_KINDS: dict[int, type[ToolFailed]] = {
    errno.ENOENT: FileMissing,
    errno.EISDIR: IsFolder,
    errno.EACCES: FileDenied,
    errno.EPERM: FileDenied,
    errno.EROFS: FileDenied,
    errno.EFBIG: FileTooLarge,
}


def os_failure(error: OSError, *, doing: str, path: str) -> ToolError:
    """`doing` is a verb: the message reads "cannot read /x: permission denied"."""
    reason = _REASONS.get(error.errno or 0) or error.strerror or str(error)
    kind = _KINDS.get(error.errno or 0, ToolFailed)
    return kind(f"cannot {doing} {shown(path)}: {reason}", path=shown(path))


def shown(text: str, *, max_chars: int = 300) -> str:
    """Text for a message: well-formed, and not too long."""
    text = well_formed(text)
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"


def size_text(size: int) -> str:
    """A number of bytes with a unit."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} bytes"

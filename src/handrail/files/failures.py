"""Errors of the operating system, and files that are not text, in words that a model can act on."""

import errno
import json
import stat
from pathlib import Path

from ..base.safe_text import well_formed
from ..errors import FileDenied, FileMissing, FileTooLarge, IsFolder, ToolError, ToolFailed

_KNOWN = json.loads(Path(__file__).with_name("failures.json").read_text())
_REASONS = {getattr(errno, name): reason for name, reason in _KNOWN["reasons"].items()}
_MAGIC = {text.encode("latin-1"): kind for text, kind in _KNOWN["first_bytes"].items()}
_KINDS: dict[int, type[ToolFailed]] = dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), FileDenied)
_KINDS |= {errno.ENOENT: FileMissing, errno.EISDIR: IsFolder, errno.EFBIG: FileTooLarge}
_SPECIAL = (
    (stat.S_ISFIFO, "a FIFO (named pipe)"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


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


def special_kind(mode: int) -> str | None:
    """The name of a special file; None for a regular file or a folder."""
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return None
    return next((name for is_kind, name in _SPECIAL if is_kind(mode)), "not a regular file")


def binary_kind(head: bytes) -> str:
    """The name of binary content, by its first bytes."""
    if head[:4] == b"RIFF":
        return {b"WEBP": "WebP image", b"WAVE": "WAV audio"}.get(head[8:12], "RIFF media")
    if head[4:8] == b"ftyp":
        return "MP4 or HEIF media"
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "binary data")

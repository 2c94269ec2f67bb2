"""Errors of the operating system, and files that are not text, in words that a model can act on."""

from __future__ import annotations

import errno
import stat

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
_SPECIAL = (
    (stat.S_ISFIFO, "a FIFO (named pipe)"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"%PDF-", "PDF document"),
    (b"PK\x03\x04", "ZIP archive (or a document based on it)"),
    (b"\x1f\x8b", "gzip archive"),
    (b"BZh", "bzip2 archive"),
    (b"\xfd7zXZ\x00", "xz archive"),
    (b"\x28\xb5\x2f\xfd", "zstd archive"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
    (b"\x7fELF", "ELF program or library"),
    (b"MZ", "Windows program"),
    (b"\xca\xfe\xba\xbe", "Java class or Mach-O program"),
    (b"\xcf\xfa\xed\xfe", "Mach-O program"),
    (b"\x00asm", "WebAssembly module"),
    (b"SQLite format 3\x00", "SQLite database"),
    (b"OggS", "Ogg media"),
    (b"ID3", "MP3 audio"),
    (b"\x1aE\xdf\xa3", "Matroska or WebM video"),
    (b"wOFF", "web font"),
    (b"wOF2", "web font"),
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
    return next((name for magic, name in _MAGIC if head.startswith(magic)), "binary data")

"""File operations for a client elsewhere. A failure is an OSError, which is passed to the client as it is."""

from __future__ import annotations

import errno
import os
import stat
from typing import Any

from .wire import Packet

MAX_BYTES = 1 << 20


def resolve(cwd: str, path: str) -> str:
    """The absolute path with links followed; it need not exist."""
    return os.path.realpath(os.path.join(cwd, os.path.expanduser(path)))


def describe(path: str) -> Packet | None:
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    version = f"{found.st_mtime_ns:x}-{found.st_ctime_ns:x}-{found.st_size:x}-{found.st_ino:x}"
    return {"size": found.st_size, "is_dir": stat.S_ISDIR(found.st_mode), "version": version, "mode": found.st_mode}


def entries(path: str) -> list[Any]:
    with os.scandir(path) as found:
        return [
            [entry.name, entry.is_dir(follow_symlinks=False), entry.is_file(follow_symlinks=False)] for entry in found
        ]


def read(path: str, offset: int, max_bytes: int) -> bytes:
    # Without O_NONBLOCK, opening a FIFO would wait for a writer.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        _check_regular(os.fstat(fd).st_mode)
        return os.pread(fd, min(max_bytes, MAX_BYTES), offset)
    finally:
        os.close(fd)


def begin_write(path: str, mode: int | None) -> str:
    """Create a temporary file beside the one to be replaced, and missing folders. `mode` is for a file that is new."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        kept: int | None = stat.S_IMODE(os.stat(path).st_mode)
        _check_regular(os.stat(path).st_mode)
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except FileNotFoundError:
        kept = mode
    temporary = os.path.join(os.path.dirname(path), f".handrail-{os.getpid()}-{os.urandom(6).hex()}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666 if kept is None else 0o600)
    try:
        if kept is not None:
            os.fchmod(fd, kept)
    finally:
        os.close(fd)
    return temporary


def append(temporary: str, offset: int, data: bytes) -> None:
    fd = os.open(temporary, os.O_WRONLY | os.O_CLOEXEC)
    try:
        while data:
            count = os.pwrite(fd, data, offset)
            data, offset = data[count:], offset + count
    finally:
        os.close(fd)


def end_write(temporary: str, path: str) -> None:
    """Replace `path`. A reader sees the old content or the new, also after a crash."""
    fd = os.open(temporary, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    os.replace(temporary, path)


def remove(path: str) -> None:
    kind = os.lstat(path).st_mode
    if stat.S_ISLNK(kind):
        raise OSError(errno.ELOOP, "it is a symbolic link, and those are not removed")
    if stat.S_ISDIR(kind):
        os.rmdir(path)
    else:
        os.unlink(path)


def _check_regular(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is not a regular file")

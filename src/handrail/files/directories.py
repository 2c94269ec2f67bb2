"""Open a folder by a path without links: a link that somebody puts into the path meanwhile is refused, never followed."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import struct
from collections.abc import Iterator

_OPENAT2, _AT_FDCWD = 437, -100
_RESOLVE_NO_MAGIC_LINKS, _RESOLVE_NO_SYMLINKS = 0x02, 0x04
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Refused by the kernel (too old), or by a filter of system calls.
_NO_OPENAT2 = (errno.ENOSYS, errno.EPERM)

_libc = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def opened(folder: str) -> Iterator[int]:
    """A descriptor of `folder`, an absolute path whose links were resolved. Raises OSError: ELOOP for a link on the way."""
    fd = _open(folder)
    try:
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def opened_or_made(folder: str, made: list[tuple[int, str]]) -> Iterator[int]:
    """Like `opened`, and makes what is missing of the path. `made` gets, outermost first, a descriptor of the folder above and
    the name of each; the caller closes them."""
    existing, missing = folder, []
    while True:
        try:
            fd = _open(existing)
            break
        except FileNotFoundError:
            existing, name = os.path.split(existing)
            missing.append(name)
    try:
        for name in reversed(missing):
            with contextlib.suppress(FileExistsError):  # another process was faster
                os.mkdir(name, dir_fd=fd)
                made.append((os.dup(fd), name))
            above, fd = fd, os.open(name, _FOLDER, dir_fd=fd)
            os.close(above)
        yield fd
    finally:
        os.close(fd)


def _open(folder: str) -> int:
    how = struct.pack("QQQ", _FOLDER, 0, _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGIC_LINKS)
    fd = int(_libc.syscall(_OPENAT2, _AT_FDCWD, os.fsencode(folder), how, len(how)))
    if fd >= 0:
        return fd
    number = ctypes.get_errno()
    if number in _NO_OPENAT2:
        return _step_by_step(folder)
    raise OSError(number, os.strerror(number), folder)


def _step_by_step(folder: str) -> int:
    fd = os.open("/", _FOLDER)
    for name in filter(None, folder.split("/")):
        above = fd
        try:
            fd = os.open(name, _FOLDER, dir_fd=above)
        except NotADirectoryError:  # what the kernel says of a link
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), folder) from None
        finally:
            os.close(above)
    return fd

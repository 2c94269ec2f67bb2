"""Replace a local file atomically: a reader sees the old content or the new, and a failure leaves nothing behind.

A folder is opened by a path without links: a link that somebody puts into the path meanwhile is refused, never followed.
"""

import contextlib
import ctypes
import errno
import os
import stat
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


def replace_file(path: str, data: bytes, *, mode: int | None = None) -> os.stat_result:
    """Write `data` to `path`, whose links were resolved: one that is there now is refused. Returns what was written. An
    existing file keeps its mode and owner; `mode` is for a new one."""
    folder, name = os.path.split(path)
    made: list[tuple[int, str]] = []
    try:
        with opened_or_made(folder, made) as fd:
            return _replace(fd, name, data, mode)
    except BaseException:
        for above, step in reversed(made):
            with contextlib.suppress(OSError):
                os.rmdir(step, dir_fd=above)
        raise
    finally:
        for above, _ in made:
            os.close(above)


def _replace(folder: int, name: str, data: bytes, mode: int | None) -> os.stat_result:
    before = _state(folder, name)
    temporary = f".handrail-{os.urandom(8).hex()}.tmp"
    try:
        # A new file gets what the umask leaves of 0666; the copy of a private file must not be readable for a moment.
        access = 0o666 if before is None else 0o600
        fd, has_name = _opened(folder, temporary, access)
        try:
            with open(fd, "wb", closefd=False) as file:
                file.write(data)
            _copy_mode_and_owner(fd, before, mode)
            os.fsync(fd)
            if not has_name:
                os.link(f"/proc/self/fd/{fd}", temporary, dst_dir_fd=folder, follow_symlinks=True)
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            written = os.fstat(fd)
        finally:
            os.close(fd)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    # The new name is made durable. Some file systems cannot sync a folder; the content is safe by now.
    with contextlib.suppress(OSError):
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    return written


def _opened(folder: int, temporary: str, access: int) -> tuple[int, bool]:
    """A new file, and whether it has a name. One without is gone when we are killed; not every file system has them."""
    if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            return os.open(".", os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, access, dir_fd=folder), False
    return os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, access, dir_fd=folder), True


def _state(folder: int, name: str) -> os.stat_result | None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(found.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
    return found


def _copy_mode_and_owner(fd: int, before: os.stat_result | None, mode: int | None) -> None:
    if before is not None:
        with contextlib.suppress(OSError):  # only root may give files away
            os.fchown(fd, before.st_uid, before.st_gid)
        os.fchmod(fd, stat.S_IMODE(before.st_mode))
    elif mode is not None:
        os.fchmod(fd, stat.S_IMODE(mode))

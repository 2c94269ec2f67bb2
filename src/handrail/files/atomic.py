"""Replace a local file atomically: a reader sees the old content or the new, and a failure leaves nothing behind."""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from .directories import opened_or_made


def replace_file(path: str, data: bytes, *, mode: int | None = None) -> os.stat_result:
    """Write `data` to `path`, whose links were resolved: one that is there now is refused. Returns what was written.

    An existing file keeps its mode and owner; `mode` is for a new one.
    """
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
            _write_all(fd, data)
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
    _sync_folder(folder)
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


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _copy_mode_and_owner(fd: int, before: os.stat_result | None, mode: int | None) -> None:
    if before is not None:
        with contextlib.suppress(OSError):  # only root may give files away
            os.fchown(fd, before.st_uid, before.st_gid)
        os.fchmod(fd, stat.S_IMODE(before.st_mode))
    elif mode is not None:
        os.fchmod(fd, stat.S_IMODE(mode))


def _sync_folder(folder: int) -> None:
    """Make the new name durable. Some file systems cannot sync a folder; the content is safe by then."""
    with contextlib.suppress(OSError):
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

"""Replace a local file atomically: a reader sees the old content or the new, and a failure leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import stat


def replace_file(path: str, data: bytes, *, mode: int | None = None) -> None:
    """Write `data` to `path`, which is resolved. An existing file keeps its mode and owner; `mode` is for a new one."""
    try:
        before: os.stat_result | None = os.stat(path)
    except FileNotFoundError:
        before = None
    made = _make_folders(os.path.dirname(path))
    temporary = os.path.join(os.path.dirname(path), f".handrail-{os.urandom(8).hex()}.tmp")
    try:
        # A new file gets what the umask leaves of 0666; the copy of a private file must not be readable for a moment.
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666 if before is None else 0o600)
        try:
            _write_all(fd, data)
            _copy_mode_and_owner(fd, before, mode)
            os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        for folder in reversed(made):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        raise
    _sync_folder(os.path.dirname(path))


def _make_folders(folder: str) -> list[str]:
    """Make the missing folders of a path and return them, outermost first."""
    missing = []
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    made: list[str] = []
    try:
        for step in reversed(missing):
            with contextlib.suppress(FileExistsError):  # another process was faster
                os.mkdir(step)
                made.append(step)
    except OSError:
        for step in reversed(made):
            with contextlib.suppress(OSError):
                os.rmdir(step)
        raise
    return made


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


def _sync_folder(folder: str) -> None:
    """Make the new name durable. Some file systems cannot sync a folder; the content is safe by then."""
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

"""Temporary folders named after the process that made them. What a killed one left is removed when another makes its first."""

import contextlib
import functools
import os
import re
import shutil
import tempfile
from collections.abc import Iterator

from .own_process import is_gone, pid_namespace, start_time

_NAME = re.compile(r"handrail-([a-z]+)\.(\d+)\.(\d+)\.(\w+)\.\w+")


def make_folder(kind: str, place: str | None = None) -> str:
    """Make one that only this user can enter, in `place`. Whoever asks for it removes it."""
    if place is None:
        _remove_left()
    pid = os.getpid()
    prefix = f"handrail-{kind}.{pid}.{start_time(pid) or 0}.{_namespace()}."
    return tempfile.mkdtemp(prefix=prefix, dir=place)


@contextlib.contextmanager
def temporary_folder(kind: str) -> Iterator[str]:
    folder = make_folder(kind)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def every_folder(kind: str = "", place: str | None = None) -> list[str]:
    """Those of this user, of all processes; of all kinds if none is given."""
    with os.scandir(place or tempfile.gettempdir()) as entries:
        named = [(entry.path, _NAME.fullmatch(entry.name)) for entry in entries]
    return [path for path, name in named if name is not None and kind in ("", name[1]) and _is_ours(path)]


def left_folders(kind: str = "", place: str | None = None) -> list[str]:
    """Those of this user whose process has certainly exited."""
    return [path for path in every_folder(kind, place) if _is_left(os.path.basename(path))]


@functools.cache
def _remove_left() -> None:
    for folder in left_folders():
        shutil.rmtree(folder, ignore_errors=True)


def _is_left(name: str) -> bool:
    _, pid, started, namespace, _ = name.split(".")
    return namespace == _namespace() and is_gone(int(pid), int(started))


def _namespace() -> str:
    """Short, as some of the folders are for sockets, whose addresses must be."""
    return f"{int(pid_namespace()) & 0xFFFF:x}"


def _is_ours(path: str) -> bool:
    try:
        return os.lstat(path).st_uid == os.getuid()
    except FileNotFoundError:  # it was removed just now
        return False

"""Temporary folders named after the process that made them. What a killed one left is removed when another makes its first."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import tempfile
from collections.abc import Iterator

from .own_process import is_gone, pid_namespace, start_time

_NAME = re.compile(r"handrail-[a-z]+-(\d+)-(\d+)-(\d+)-\w+")


def make_folder(kind: str) -> str:
    """Make one that only this user can enter. Whoever asks for it removes it."""
    _remove_left()
    pid = os.getpid()
    return tempfile.mkdtemp(prefix=f"handrail-{kind}-{pid}-{start_time(pid) or 0}-{pid_namespace()}-")


@contextlib.contextmanager
def temporary_folder(kind: str) -> Iterator[str]:
    folder = make_folder(kind)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def left_folders() -> list[str]:
    """Those of this user whose process has certainly exited."""
    with os.scandir(tempfile.gettempdir()) as entries:
        found = [(entry.path, _NAME.fullmatch(entry.name)) for entry in entries if entry.name.startswith("handrail-")]
    return [path for path, name in found if name is not None and _is_left(name) and _is_ours(path)]


@functools.cache
def _remove_left() -> None:
    for folder in left_folders():
        shutil.rmtree(folder, ignore_errors=True)


def _is_left(name: re.Match[str]) -> bool:
    pid, started, namespace = name.groups()
    return namespace == pid_namespace() and is_gone(int(pid), int(started))


def _is_ours(path: str) -> bool:
    try:
        return os.lstat(path).st_uid == os.getuid()
    except FileNotFoundError:  # it was removed just now
        return False

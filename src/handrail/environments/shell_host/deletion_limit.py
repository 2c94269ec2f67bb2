"""How much a call may delete that nothing else has, before it has to wait for an answer. Counted is what was there before the
call, and is neither in a commit of its repository nor made by a tool that makes it again: builds, installs, tests and checkouts
delete thousands of files that nobody misses. What it costs to find out is paid only by a call that deletes as many files as the
limit."""

from __future__ import annotations

import errno
import os
import re
import stat
import struct
from typing import Any, Callable, Dict, List, Tuple  # noqa: UP035  Python 3.8 knows no other place

from . import proc
from .held_calls import HeldCall, Hold
from .journal_log import lstat

_MEGABYTE, _MAX_INDEX_BYTES = 1 << 20, 256 << 20
_ENTRY = struct.Struct(">8xII20xI20xH")  # of git's index: modification time, its nanoseconds, size, flags
_EXTENDED, _NAME_BITS = 0x4000, 0xFFF
_REMADE_FOLDERS = (
    r"node_modules|bower_components|__pycache__|site-packages|dist-packages|\.?v?env|\.tox|\.nox|\.git|\.hg|\.svn|_?build|dist|"
    r"out|target|obj|cmake-build-\w+|CMakeFiles|\.next|\.nuxt|\.turbo|\.parcel-cache|\.gradle|\.m2|\.cargo|\.npm|\.cache|"
    r"\.\w+_cache|\.eggs|[^/]+\.egg-info|[^/]+\.dist-info|htmlcov|coverage|tmp|\.tmp|pytest-of-[^/]+|pip-[^/]+|\.ipynb_checkpoints"
)
_REMADE = re.compile(
    rf"/(?:{_REMADE_FOLDERS})/|\.(?:o|a|lo|la|so|obj|d|pyc|pyo|class|gcda|gcno|tmp|temp|log|lock|pid|swp|part|orig|rej)$|~$"
).search
_SENSITIVE = re.compile(
    r"/(?:\.git/HEAD|\.ssh/(?:id_[^/]*|config|authorized_keys)|\.gnupg/private-keys-v1\.d/[^/]+|\.aws/credentials|\.env)$"
).search

_Known = Dict[str, Tuple[int, int, int]]  # noqa: UP006  by path in the repository: modification time, nanoseconds, size


class DeletionLimit:
    """Of one call. A limit of 0 is none."""

    def __init__(self, files: int, megabytes: int) -> None:
        self._files, self._bytes = files, megabytes * _MEGABYTE
        self._waiting: List[Tuple[str, os.stat_result]] = []  # noqa: UP006  deletions that were not looked at yet
        self._waiting_bytes = self._count = self._size = 0
        self._folder = ""
        self._indexes: Dict[str, _Known] = {}  # noqa: UP006  by repository
        self._allowed: set[str] = set()

    def check(self, path: str, found: os.stat_result, pid: int, remove: Callable[[str, os.stat_result], None]) -> None:
        """Called before this process deletes an old file. Lets that wait for an answer if it is one too many, or the path is
        sensitive; after a yes `remove` writes it down."""
        if _SENSITIVE(path) and path not in self._allowed:
            self._hold(HeldCall("sensitive deletion", "unlink", path), path, remove)
        if stat.S_ISDIR(found.st_mode) or self._folder in self._allowed:
            return
        self._waiting.append((path, found))
        self._waiting_bytes += found.st_size
        if not self._is_over(self._count + len(self._waiting), self._size + self._waiting_bytes):
            return
        self._look(_project_of(pid))
        if self._is_over(self._count, self._size):
            detail = f": {self._count:,} files, {self._size / _MEGABYTE:,.1f} MB"
            self._hold(HeldCall("many deletions", "unlink", self._folder, detail=detail), path, remove)

    def allows(self, files: list[tuple[str, Any]], pid: int) -> bool:
        """Count these deletions, unless one of them would have to wait for an answer."""
        if any(_SENSITIVE(path) and path not in self._allowed for path, _ in files):
            return False
        if self._folder in self._allowed:
            return True
        before = list(self._waiting), self._waiting_bytes, self._count, self._size, self._folder
        self._waiting += [(path, found) for path, found in files if not stat.S_ISDIR(found.st_mode)]
        self._waiting_bytes = sum(found.st_size for _, found in self._waiting)
        if self._is_over(self._count + len(self._waiting), self._size + self._waiting_bytes):
            self._look(_project_of(pid))
        is_over = self._is_over(self._count, self._size)
        if is_over:
            self._waiting, self._waiting_bytes, self._count, self._size, self._folder = before
        return not is_over

    def _hold(self, held: HeldCall, path: str, remove: Callable[[str, os.stat_result], None]) -> None:
        def go_on() -> None:
            self._allowed.add(held.target)
            now = lstat(path)  # it may be another file by now
            if now is not None:
                remove(path, now)

        raise Hold(held, go_on, errno.EPERM)

    def _is_over(self, files: int, size: int) -> bool:
        return bool((self._files and files > self._files) or (self._bytes and size > self._bytes))

    def _look(self, project: str) -> None:
        for path, found in self._waiting:
            # A project below /tmp is one all the same.
            below = path[len(project) :] if path.startswith(project + "/") else path
            if not _REMADE(below) and not self._is_committed(path, found):
                self._count += 1
                self._size += found.st_size
                self._folder = os.path.commonpath([self._folder or os.path.dirname(path), os.path.dirname(path)])
        self._waiting, self._waiting_bytes = [], 0

    def _is_committed(self, path: str, found: os.stat_result) -> bool:
        root = repository_of(path)
        if not root:
            return False
        if root not in self._indexes:
            self._indexes[root] = read_index(root)
        modified = found.st_mtime_ns
        same = (modified // 10**9 & 0xFFFFFFFF, modified % 10**9, found.st_size & 0xFFFFFFFF)
        return self._indexes[root].get(path[len(root) + 1 :]) == same


def _project_of(pid: int) -> str:
    """The repository that a process works in, or its folder."""
    folder = proc.link(f"/proc/{pid}/cwd") or "/"
    return repository_of(os.path.join(folder, ".")) or folder


def repository_of(path: str) -> str:
    while len(path) > 1:
        path = os.path.dirname(path)
        if os.path.lexists(f"{path}/.git"):
            return path
    return ""


def read_index(root: str) -> _Known:
    """The files that a repository has in its index, as they were when they were put there. Empty if it cannot be read."""
    folder = f"{root}/.git"
    try:
        if not os.path.isdir(folder):  # a work tree beside the first one has a file that names its folder
            with open(folder, encoding="utf-8") as pointer:
                folder = os.path.join(root, pointer.read(4096).partition("gitdir:")[2].strip())
        with open(f"{folder}/index", "rb") as file:
            data = file.read(_MAX_INDEX_BYTES)
        magic, version, count = struct.unpack_from(">4sII", data)
        return _entries(data, version, count) if magic == b"DIRC" else {}
    except (OSError, ValueError, struct.error):
        return {}


def _entries(data: bytes, version: int, count: int) -> _Known:
    found: _Known = {}
    at, name = 12, b""
    for _ in range(count):
        seconds, nanoseconds, size, flags = _ENTRY.unpack_from(data, at)
        start = at + _ENTRY.size + (2 if version > 2 and flags & _EXTENDED else 0)
        if version > 3:  # the name begins as the one before, without so many bytes at its end
            cut, start = _number(data, start)
            end = data.index(b"\0", start)
            name = name[: len(name) - cut] + data[start:end]
            at = end + 1
        else:
            length = flags & _NAME_BITS
            end = start + length if length < _NAME_BITS else data.index(b"\0", start)
            name = data[start:end]
            at += (end - at + 8) // 8 * 8
        found[os.fsdecode(name)] = (seconds, nanoseconds, size)
    return found


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of any length, and where it ends."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 0x7F)
    return value, at + 1

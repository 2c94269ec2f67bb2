"""What has changed since a call, so that taking it back would lose it. Later calls are known exactly: by path, by the folders
above and below, and by other names of the same file. Everybody else is noticed by the time of a file's last change of any kind,
which no program can set. A later call that was undone explains that time, but has left the content and its time as it met them:
content that is younger than the call is somebody's."""

from __future__ import annotations

import os
import stat
from typing import Iterable, NamedTuple  # noqa: UP035  Python 3.8 knows no other place

from . import journal_log as log
from .journal_log import Entry, Journal, lstat

_MOVES = (log.RENAME, log.EXCHANGE)
_NAMES = (log.ABSENT, log.FOLDER, *_MOVES)


class Conflict(NamedTuple):
    """`call` is 0 if it was not a call that changed the path; `when` is in nanoseconds."""

    path: str
    call: int
    when: int


def conflicts(journal: Journal, call: int, entries: list[Entry], sizes: dict[str, tuple[int, int]]) -> list[Conflict]:
    """What else has changed the paths of these entries of the call since it ended. Parts that were taken back are not among
    them. New folders have to be walked for that: `sizes` gets how many files they hold, and their bytes."""
    end = journal.end(call)
    if end is None:
        return []
    mine = _Touched(entries)
    found: dict[str, Conflict] = {}
    until = _Until(end, sizes)
    others: dict[int, _Touched] = {}  # later calls that hold
    for later in (number for number in journal.calls() if number > call):
        theirs = _Touched(journal.entries(later))
        when = journal.end(later) or 0
        until.later.append((theirs, when))
        if journal.is_reverted(later, call) or any(target == call for target, _ in journal.undoes(later)):
            continue
        others[later] = theirs
        for path in sorted(mine.shared_with(theirs)):
            found[path] = Conflict(path, later, when)
    for path in sorted(mine.paths - set(found)):
        try:
            when = until.changed_after(path, is_new=path in mine.new)
            inode = os.lstat(path).st_ino if when else 0
            by = max((number for number, theirs in others.items() if inode in theirs.inodes), default=0)
        except PermissionError:  # in a folder that is closed by now
            path, when = _closed_above(path)
            by = max((number for number, theirs in others.items() if path in theirs.paths), default=0)
            when = 0 if path in mine.paths and not by else when  # the undo of this call opens it first
        if when:
            found[path] = Conflict(path, by, when)
    return list(found.values())


def _closed_above(path: str) -> tuple[str, int]:
    """The folder that lets this user not see what is in it, and when it was changed last."""
    while True:
        path = os.path.dirname(path)
        try:
            return path, os.lstat(path).st_ctime_ns
        except PermissionError:
            continue


class _Touched:
    """The paths and files that entries are about."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.paths: set[str] = set()
        self.trees: set[str] = set()  # names that came, went or moved: what is below them is concerned as well
        self.new: set[str] = set()
        self.folders: set[str] = set()  # that got or lost a name, and files with a further name in a new one
        self.inodes: set[int] = set()
        for entry in entries:
            self.inodes.add(entry.meta.inode)
            if entry.kind == log.TIMES:
                self.folders.add(entry.path)
            if entry.kind in (log.TIMES, log.HOST):
                continue
            names = (entry.path, entry.second) if entry.kind in _MOVES else (entry.path,)
            self.paths.update(names)
            if entry.kind in _NAMES:
                self.trees.update(names)
            if entry.kind == log.ABSENT:
                self.new.add(entry.path)

    def shared_with(self, theirs: _Touched) -> set[str]:
        below = {path for path in theirs.paths if path in self.paths or _is_below(path, self.trees)}
        return below | {path for path in self.paths if _is_below(path, theirs.trees)}


class _Until:
    """Until when a change of a file is explained by a call."""

    def __init__(self, end: int, sizes: dict[str, tuple[int, int]]) -> None:
        self._end, self._sizes = end, sizes
        self.later: list[tuple[_Touched, int]] = []  # what calls since then have touched, and when they ended
        self._paths: dict[str, int] = {}
        self._trees: dict[str, int] = {}  # what is below them is explained as well
        self._inodes: dict[int, int] = {}

    def _add(self, touched: _Touched, when: int) -> None:
        for path in touched.paths | touched.folders:
            self._paths[path] = max(self._paths.get(path, 0), when)
            try:
                found = lstat(path)
            except PermissionError:
                continue
            if found is not None:
                self._inodes[found.st_ino] = max(self._inodes.get(found.st_ino, 0), when)
        for path in touched.trees:
            self._trees[path] = max(self._trees.get(path, 0), when)
        for inode in touched.inodes:
            self._inodes[inode] = max(self._inodes.get(inode, 0), when)

    def changed_after(self, path: str, *, is_new: bool) -> int:
        """When somebody else changed it last, or 0. What is in an older folder is not this call's."""
        found = lstat(path)
        if found is None or (stat.S_ISDIR(found.st_mode) and not is_new):
            return 0
        return self._changed(path, found) or (self._inside(path) if stat.S_ISDIR(found.st_mode) else 0)

    def _inside(self, folder: str) -> int:
        todo, end, files, size = [folder], self._end, 0, 0
        while todo:
            at = todo.pop()
            if not os.access(at, os.R_OK | os.X_OK):
                continue  # closed, and its own time was looked at
            fd = os.open(at, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                with os.scandir(fd) as inside:  # of a descriptor: whole paths take longer to look up
                    for entry in inside:
                        found = entry.stat(follow_symlinks=False)
                        when = self._changed(f"{at}/{entry.name}", found) if found.st_ctime_ns > end else 0
                        if when:
                            return when
                        if entry.is_dir(follow_symlinks=False):
                            todo.append(f"{at}/{entry.name}")
                        else:
                            files += 1
                            size += found.st_size
            finally:
                os.close(fd)
        self._sizes[folder] = files, size
        return 0

    def _changed(self, path: str, found: os.stat_result) -> int:
        """When, or 0. A time of content that is yet to come was set by a program."""
        if found.st_ctime_ns <= self._end:
            return 0
        if stat.S_ISREG(found.st_mode) and self._end < found.st_mtime_ns <= found.st_ctime_ns:
            return found.st_mtime_ns
        for touched, ended in self.later:  # needed only if something has changed at all
            self._add(touched, ended)
        self.later = []
        if found.st_ctime_ns <= max(self._paths.get(path, 0), self._inodes.get(found.st_ino, 0)):
            return 0
        while len(path) > 1:
            if found.st_ctime_ns <= self._trees.get(path, 0):
                return 0
            path = os.path.dirname(path)
        return found.st_ctime_ns


def _is_below(path: str, folders: set[str]) -> bool:
    """Whether the path is one of the folders, or in one."""
    while len(path) > 1:
        if path in folders:
            return True
        path = os.path.dirname(path)
    return False

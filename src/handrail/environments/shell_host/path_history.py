"""What was at a path before a call and after it, as far as the journal and the file system tell."""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

from . import journal_log as log
from .journal_log import Entry, Journal, lstat
from .stash import Stash

_NO_PATH = (log.TIMES, log.HOST, log.UNSAVED)
_MOVES = (log.RENAME, log.EXCHANGE)
_KEPT = (log.CONTENT, log.STASHED, log.RENAME)


class State(NamedTuple):
    exists: bool
    size: int = 0
    mode: int = 0


class PathHistory:
    """Of the paths that the entries of one call are about."""

    def __init__(self, journal: Journal, call: int, entries: list[Entry], max_bytes: int) -> None:
        self._max_bytes = max_bytes
        is_stashed = Stash(journal.folder, "").holds
        self._first = {path: entry for path, entry in _first(entries).items() if not is_stashed(path)}
        self._moved = {path: now for path, now in _moved(entries).items() if not is_stashed(now)}
        self.unsaved = {entry.path for entry in entries if entry.kind == log.UNSAVED}
        self.before = {path: _state_before(path, entry) for path, entry in self._first.items()}
        self._later: dict[str, list[tuple[int, Entry]]] = {}  # by path, what later calls met there first
        for later in (number for number in journal.calls() if number > call):
            for path, entry in _first(journal.entries(later)).items():
                self._later.setdefault(path, []).append((later, entry))

    def after(self, path: str) -> State:
        """As the next call that has touched it found it, or as it is now."""
        later, found = self._later.get(path), lstat(path)
        if later:
            return _state_before(path, later[0][1])
        return State(True, found.st_size, found.st_mode) if found is not None else State(False)

    def moved_to(self, path: str) -> str:
        """Where the call has brought what was there, or nothing: it is still there, or gone."""
        now = self._moved.get(path, path)
        return now if now != path and not self.after(path).exists and self.after(now).exists else ""

    def content_before(self, path: str) -> bytes | None:
        """None if it is not known, no regular file, or too long."""
        entry = self._first[path]
        if entry.kind in (log.ABSENT, *_MOVES) or not stat.S_ISREG(entry.meta.mode):
            return None
        return self._content_met(path, entry, 0)

    def content_after(self, path: str, after: int = 0) -> bytes | None:
        """Likewise. `after` is a later call than the one that this history is about."""
        for call, entry in self._later.get(path, ()):
            if call > after:
                return self._content_met(path, entry, call)
        return self._read(path)

    def _content_met(self, path: str, entry: Entry, call: int) -> bytes | None:
        """What was there when the entry of this call was written. An undo may have moved it out of the stash since."""
        if entry.kind == log.CONTENT and not entry.second:
            return entry.content() if entry.meta.size <= self._max_bytes else None
        if entry.kind in _KEPT and path == entry.path:
            for later, moved in self._later.get(entry.second, ()):
                if later > call and moved.kind == log.RENAME and moved.path == entry.second:
                    return self.content_after(moved.second, later)
            return self._read(entry.second)
        if entry.kind in (log.GROWN, log.ATTRIBUTES):
            found = self.content_after(path, call)
            return found[: entry.meta.size] if found is not None and entry.kind == log.GROWN else found
        return None

    def _read(self, path: str) -> bytes | None:
        try:
            with open(path, "rb") as file:
                is_regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
                content = file.read(self._max_bytes + 1) if is_regular else b""
        except OSError:
            return None
        return content if is_regular and len(content) <= self._max_bytes else None


def _first(entries: list[Entry]) -> dict[str, Entry]:
    """The first entry about each path."""
    found: dict[str, Entry] = {}
    for entry in entries:
        if entry.kind not in _NO_PATH:
            found.setdefault(entry.path, entry)
            if entry.kind in _MOVES:
                found.setdefault(entry.second, entry)
    return found


def _moved(entries: list[Entry]) -> dict[str, str]:
    """Where what was at a path is after all renames."""
    origins: dict[str, str] = {}  # by the path where it is now
    for entry in entries:
        if entry.kind == log.RENAME:
            origins[entry.second] = origins.pop(entry.path, entry.path)
    return {origin: now for now, origin in origins.items()}


def _state_before(path: str, entry: Entry) -> State:
    is_absent = entry.kind == log.ABSENT or (entry.kind == log.RENAME and path == entry.second)
    return State(False) if is_absent else State(True, entry.meta.size, entry.meta.mode)

"""What was at a path before a call and after it, as far as the journal and the file system tell."""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

from . import journal_log as log
from .journal_log import Entry, Journal, Meta
from .journal_undo import lstat
from .stash import Stash

_NO_PATH = (log.TIMES, log.HOST, log.UNSAVED)
_MOVES = (log.RENAME, log.EXCHANGE)


class State(NamedTuple):
    exists: bool
    size: int = 0
    mode: int = 0


_ABSENT = State(False)


class PathHistory:
    """Of the paths that the entries of one call are about."""

    def __init__(self, journal: Journal, call: int, entries: list[Entry]) -> None:
        self._journal, self._entries = journal, entries
        self._is_stashed = Stash(journal.folder, "").holds
        self._first: dict[str, Entry] = {}
        self.unsaved = {entry.path for entry in entries if entry.kind == log.UNSAVED}
        for entry in entries:
            for path in _names(entry):
                if not self._is_stashed(path):
                    self._first.setdefault(path, entry)
        self.before = {path: _state_before(path, entry) for path, entry in self._first.items()}
        self._later: dict[str, list[tuple[int, Entry]]] = {}  # by path, what later calls met there first
        for later in (number for number in journal.calls() if number > call):
            self._add_later(later)

    def _add_later(self, call: int) -> None:
        seen: set[str] = set()
        for entry in self._journal.entries(call):
            for path in _names(entry):
                if path not in seen:
                    seen.add(path)
                    self._later.setdefault(path, []).append((call, entry))

    def after(self, path: str) -> State:
        """As the next call that has touched it found it, or as it is now."""
        later = self._later.get(path)
        if later:
            return _state_before(path, later[0][1])
        found = lstat(path)
        return State(True, found.st_size, found.st_mode) if found is not None else _ABSENT

    def moved_to(self, path: str) -> str:
        """Where the call has brought what was there, or nothing: it is still there, or gone."""
        now = path
        for entry in self._entries:
            if entry.kind == log.RENAME and entry.path == now:
                now = entry.second
        is_away = now != path and not self._is_stashed(now) and not self.after(path).exists
        return now if is_away and self.after(now).exists else ""

    def content_before(self, path: str, max_bytes: int) -> bytes | None:
        """None if it is not known, no regular file, or longer than `max_bytes`."""
        entry = self._first[path]
        if entry.kind in (log.ABSENT, *_MOVES) or not stat.S_ISREG(entry.meta.mode) or entry.meta.size > max_bytes:
            return None
        return self._content_met(path, entry, 0, max_bytes)

    def content_after(self, path: str, max_bytes: int, after: int = 0) -> bytes | None:
        """Likewise. `after` is a later call than the one that this history is about."""
        for call, entry in self._later.get(path, ()):
            if call > after:
                return self._content_met(path, entry, call, max_bytes)
        return _read(path, max_bytes)

    def _content_met(self, path: str, entry: Entry, call: int, max_bytes: int) -> bytes | None:
        """What was there when the entry of this call was written."""
        if entry.kind == log.CONTENT and not entry.second:
            return entry.content() if entry.meta.size <= max_bytes else None
        if entry.kind in (log.CONTENT, log.STASHED):
            return self._content_kept(entry.second, call, max_bytes)
        if entry.kind == log.RENAME and entry.path == path:
            return self._content_kept(entry.second, call, max_bytes)
        if entry.kind in (log.GROWN, log.ATTRIBUTES):
            found = self.content_after(path, max_bytes, call)
            return found[: entry.meta.size] if found is not None and entry.kind == log.GROWN else found
        return None

    def _content_kept(self, kept: str, after: int, max_bytes: int) -> bytes | None:
        """The content of a file in the stash: an undo may have moved it back."""
        for call, entry in self._later.get(kept, ()):
            if call > after and entry.kind == log.RENAME and entry.path == kept:
                return self.content_after(entry.second, max_bytes, call)
        return _read(kept, max_bytes)


def _names(entry: Entry) -> tuple[str, ...]:
    if entry.kind in _NO_PATH:
        return ()
    return (entry.path, entry.second) if entry.kind in _MOVES else (entry.path,)


def _state_before(path: str, entry: Entry) -> State:
    if entry.kind == log.ABSENT or (entry.kind == log.RENAME and path == entry.second):
        return _ABSENT
    meta: Meta = entry.meta
    return State(True, meta.size, meta.mode)


def _read(path: str, max_bytes: int) -> bytes | None:
    try:
        with open(path, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            content = file.read(max_bytes + 1)
    except OSError:
        return None
    return content if len(content) <= max_bytes else None

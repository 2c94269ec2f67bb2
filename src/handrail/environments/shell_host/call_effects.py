"""What a call has changed, and taking it back: the operations on a journal that people and models ask for. Each answers with
values that can be sent as JSON. Paths are absolute; times are seconds since 1970."""

from __future__ import annotations

import difflib
import hashlib
import os
import stat
from typing import Any, Callable, Dict, Iterable, Iterator, NamedTuple, Tuple  # noqa: UP035  Python 3.8 knows no other place

from . import journal_log as log
from . import journal_undo
from .journal import CallJournal, Stash
from .journal_conflicts import conflicts
from .journal_expiry import expired_calls, is_prune_due, locked, prune
from .journal_log import Damaged, Entry, Journal, LogWriter, lstat, meta_of, writer_name
from .journal_undo import Undo, select, without

__all__ = ["describe", "is_prune_due", "prune", "prune_if_due", "recover", "undo"]
Answer = Dict[str, Any]  # noqa: UP006  the same
Sizes = Dict[str, Tuple[int, int]]  # noqa: UP006  the files in a folder, and their bytes
MAX_PATHS, MAX_DIFFS = 1_000, 50
MAX_DIFF_BYTES, MAX_DIFF_LINES = 256 << 10, 200
_NO_PATH = (log.TIMES, log.HOST, log.UNSAVED)
_MOVES = (log.RENAME, log.EXCHANGE)
_KEPT = (log.CONTENT, log.STASHED, log.RENAME)


def describe(
    journal_folder: str, call: int, *, diff: bool = False, since: float = 0.0, journal: Journal | None = None
) -> Answer:
    """What is different after the call: paths that are lost, changed, created and moved, hosts, and what was not saved. `since`
    is before the call has begun, if that is known: what is older is not read. `journal` has been read before, and only what was
    added is read now."""
    journal = journal or Journal(journal_folder)
    try:
        journal.refresh(since)
    except Damaged as damage:
        return {"call": call, "damaged": str(damage), "can_undo": False, "reason": str(damage)}
    entries = journal.entries(call)
    paths = _paths(journal, call, entries, {}, diff=diff)
    reason = _refusal(journal, call, entries)
    end = journal.end(call)
    unsaved = [(entry.path, entry.data.decode(errors="replace")) for entry in entries if entry.kind == log.UNSAVED]
    return {
        "call": call,
        **{kind: found[:MAX_PATHS] for kind, found in paths.items()},
        "counts": {kind: len(found) for kind, found in paths.items()},
        "hosts": sorted({entry.path for entry in entries if entry.kind == log.HOST}),
        "unsaved": [{"path": path, "reason": reason} for path, reason in unsaved[:MAX_PATHS]],
        "ended": end / 1e9 if end is not None and not journal.is_running(call) else None,
        "rolled_back": journal.is_rolled_back(call),
        "undone": journal.is_undone(call),
        "undone_by": journal.undone_by(call),
        "can_undo": not reason,
        "reason": reason,
        "digest": _digest(entries),
    }


def prune_if_due(journal_folder: str, keep_days: float, keep_bytes: int) -> Answer:
    """Forget what is too old or too much, at most once an hour."""
    return prune(journal_folder, keep_days, keep_bytes) if is_prune_due(journal_folder) else {"calls": []}


def recover(journal_folder: str, on_crash: str = "undo") -> Answer:
    """After a crash: see `journal_undo.recover`."""
    return {"recovered": journal_undo.recover(journal_folder, on_crash)}


def undo(
    journal_folder: str,
    call: int,
    number: int,
    only: str = "",
    force: bool = False,
    dry_run: bool = False,
    digest: str = "",
    since: float = 0.0,
) -> Answer:
    """Take the call back, or only what it did at a path and below it. `number` is that of the undo, which is a call itself.
    `status` is "undone", "conflict", "refused" or, for `dry_run`, "possible". What somebody has changed since is a conflict,
    and then nothing is done, unless `force` is given: what is there now is kept beside it. `digest` is that of the call when it
    had ended: entries that somebody has changed since are not trusted. `since` is as for `describe`."""
    with locked(journal_folder):
        journal = Journal(journal_folder)
        try:
            journal.refresh(since)
        except Damaged as damage:
            return refused(str(damage))
        entries = journal.entries(call)
        reason = _refusal(journal, call, entries)
        if not reason and digest and _digest(entries) != digest:
            return refused(f"the journal is damaged: its entries of call {call} are not those that were written")
        if not reason and only:
            # The last part may be a symbolic link, which is meant itself.
            only = os.path.join(os.path.realpath(os.path.dirname(only)), os.path.basename(only.rstrip("/")))
            entries = select(entries, only)
            is_touched = any(entry.kind != log.TIMES for entry in entries)
            reason = "" if is_touched else f"call {call} has changed nothing at {only}"
        if not reason:
            entries = without(entries, journal.undone_parts(call))
            if all(entry.kind == log.TIMES for entry in entries):
                reason = f"call {call} is undone already" + (f" at {only}" if only else "")
        if reason:
            return refused(reason)
        sizes: Sizes = {}
        found = conflicts(journal, call, entries, sizes)
        told = [{"path": one.path, "call": one.call, "when": one.when / 1e9} for one in found]
        status = "conflict" if found and not force else "possible" if dry_run else "undone"
        answer = {**refused(""), "status": status, **_paths(journal, call, entries, sizes), "conflicts": told}
        if status == "undone":
            beside = frozenset(one.path for one in found)
            answer.update(_take_back(journal, entries, number, (call, only), beside))
    return answer


def _take_back(
    journal: Journal, entries: list[Entry], number: int, undoes: tuple[int, str], beside: frozenset[str]
) -> Answer:
    name = writer_name()
    writer, stash = LogWriter(journal.folder, name), Stash(journal.folder, name)
    try:
        record = CallJournal(writer, stash, number)
        record.undoes(*undoes)
        undone = Undo(journal, stash, record).run(entries, keep_beside=beside)
        record.end()
        writer.sync()
    finally:
        writer.close()
    moved = ((path, f"{path}.before-undo-{number}") for path in beside)
    kept = {path: to for path, to in moved if os.path.lexists(to)}
    failed = [{"path": path, "reason": reason} for path, reason in undone.failed]
    return {"number": number, "kept_beside": kept, "restored": undone.restored, "failed": failed}


def refused(reason: str) -> Answer:
    lists: Answer = {kind: [] for kind in ("lost", "changed", "created", "moved", "conflicts", "failed")}
    return {**lists, "status": "refused", "reason": reason, "restored": 0, "kept_beside": {}}


def _refusal(journal: Journal, call: int, entries: list[Entry]) -> str:
    """Why the call cannot be taken back, or nothing."""
    if call in expired_calls(journal.folder):
        return "its changes are not kept any more"
    if not any(entry.kind not in (log.HOST, log.UNSAVED) for entry in entries):
        return f"call {call} has changed no file that was kept"
    if journal.is_rolled_back(call):
        return f"call {call} was interrupted, and taken back already"
    if journal.is_undone(call):
        return f"call {call} is undone already"
    if journal.end(call) is None:
        return f"call {call} still runs; stop it first"
    return ""


def _paths(journal: Journal, call: int, entries: list[Entry], sizes: Sizes, *, diff: bool = False) -> Answer:
    """What is different, by kind. A file that came and went within the call is none of it."""
    history = PathHistory(journal, call, entries, MAX_DIFF_BYTES)
    found: Answer = {"lost": [], "changed": [], "created": [], "moved": []}
    arrived = {history.moved_to(path) for path, before in history.before.items() if before.exists}
    for path, before in sorted(history.before.items()):
        after, to = history.after(path), history.moved_to(path) if before.exists else ""
        one: Answer = {"path": path, "kind": _kind(before.mode or after.mode), "size": before.size}
        if to:
            found["moved"].append({**one, "to": to})
        elif before.exists and after.exists:
            modes = {"mode": stat.S_IMODE(before.mode), "mode_now": stat.S_IMODE(after.mode)}
            found["changed"].append({**one, "size_now": after.size, **modes})
        elif before.exists:
            found["lost"].append({**one, "saved": path not in history.unsaved})
        elif after.exists and path not in arrived:
            files, size = (1, after.size) if not stat.S_ISDIR(after.mode) else sizes.get(path) or _below(path)
            found["created"].append({**one, "size": size, "files": files})
    for one in [*found["changed"], *found["lost"]][: MAX_DIFFS if diff else 0]:
        one["diff"] = _diff(history, one["path"], is_lost="saved" in one)
    return found


def _below(folder: str) -> tuple[int, int]:
    """How many files there are in a folder, and their bytes."""
    folders = ((parent, names) for parent, _, names in os.walk(folder) if os.access(parent, os.X_OK))
    paths = (os.path.join(parent, name) for parent, names in folders for name in names)
    sizes = [found.st_size for found in map(lstat, paths) if found is not None]
    return len(sizes), sum(sizes)


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "file" if stat.S_ISREG(mode) else "other"


def _diff(history: PathHistory, path: str, *, is_lost: bool) -> str:
    """At most `MAX_DIFF_LINES`; empty if the contents are equal, are not text or are too long."""
    before = history.content_before(path)
    after = b"" if is_lost else history.content_after(path)
    if before is None or after is None or b"\0" in before or b"\0" in after:
        return ""
    texts = [content.decode("utf-8", "replace").splitlines() for content in (before, after)]
    lines = list(difflib.unified_diff(texts[0], texts[1], path, path, lineterm=""))
    left = len(lines) - MAX_DIFF_LINES
    return "\n".join(lines if left <= 0 else [*lines[:MAX_DIFF_LINES], f"... {left} more lines"])


def _digest(entries: list[Entry]) -> str:
    """Binds what the call changed and what was there before."""
    digest = hashlib.sha256()
    for entry in entries:
        content = hashlib.sha256(entry.content()).digest()
        digest.update(repr((entry.kind, entry.path, entry.second, entry.meta, entry.extended, content)).encode())
    return digest.hexdigest()


class State(NamedTuple):
    exists: bool
    size: int = 0
    mode: int = 0


class PathHistory:
    """Of the paths that the entries of one call are about."""

    def __init__(self, journal: Journal, call: int, entries: list[Entry], max_bytes: int) -> None:
        self._max_bytes = max_bytes
        later = {number: journal.entries(number) for number in journal.calls() if number > call}
        self._is_stashed = Stash(journal.folder, "").holds
        self._renames = [entry for found in later.values() for entry in found if entry.kind == log.RENAME]
        first = _first(entries, self._tree)
        self._first = {path: entry for path, entry in first.items() if not self._is_stashed(path)}
        self._moved = {path: now for path, now in _moved(entries).items() if not self._is_stashed(now)}
        self.unsaved = {entry.path for entry in entries if entry.kind == log.UNSAVED}
        self.before = {path: _state_before(path, entry) for path, entry in self._first.items()}
        self._later: dict[str, list[tuple[int, Entry]]] = {}  # by path, what later calls met there first
        for number, found in later.items():
            for path, entry in _first(found, self._own_in_tree).items():
                self._later.setdefault(path, []).append((number, entry))

    def _tree(self, entry: Entry) -> Iterator[Entry]:
        """What was in a folder that was moved to the stash, as if each had been."""
        top = self._kept_tree(entry)
        for parent, folders, names in os.walk(top) if top else ():
            for name in (*folders, *names):
                yield from self._in_tree(entry, top, f"{parent}/{name}"[len(top) :])

    def _own_in_tree(self, entry: Entry) -> Iterator[Entry]:
        """The same of a later call, for the paths that this history is about."""
        top = self._kept_tree(entry)
        is_back = self._is_stashed(entry.path) and not self._is_stashed(entry.second)
        above = (entry.path if top else entry.second if is_back else "") + "/"
        for path in [path for path in self._first if path.startswith(above)] if len(above) > 1 else ():
            rest = path[len(above) - 1 :]
            if top:
                yield from self._in_tree(entry, top, rest)
            else:
                yield entry._replace(path=entry.path + rest, second=path)

    @staticmethod
    def _in_tree(entry: Entry, top: str, rest: str) -> Iterator[Entry]:
        found = lstat(top + rest)
        if found is not None:
            path, kept = entry.path + rest, entry.second + rest
            yield entry._replace(kind=log.STASHED, path=path, second=kept, meta=meta_of(found))

    def _kept_tree(self, entry: Entry) -> str:
        """Where a folder is now that was moved to the stash, or nothing. An undo may have moved it since."""
        if not stat.S_ISDIR(entry.meta.mode) or not self._is_stashed(entry.second) or self._is_stashed(entry.path):
            return ""
        place = entry.second
        for moved in self._renames:
            place = moved.second if moved.path == place else place
        return place

    def after(self, path: str) -> State:
        """As the next call that has touched it found it, or as it is now."""
        later = self._later.get(path)
        if later:
            return _state_before(path, later[0][1])
        try:
            found = lstat(path)
        except PermissionError:  # a folder above is closed to this user
            before = self.before.get(path)
            return before if before is not None and before.exists else State(True)
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


def _first(entries: list[Entry], tree: Callable[[Entry], Iterable[Entry]]) -> dict[str, Entry]:
    """The first entry about each path. `tree` says what a folder held that was moved away as a whole."""
    found: dict[str, Entry] = {}
    for entry in entries:
        for one in (entry, *(tree(entry) if entry.kind == log.RENAME else ())):
            if one.kind not in _NO_PATH:
                found.setdefault(one.path, one)
                if one.kind in _MOVES:
                    found.setdefault(one.second, one)
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

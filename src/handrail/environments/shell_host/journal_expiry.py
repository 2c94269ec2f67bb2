"""What a journal forgets: the oldest calls, when they are too old or too much is kept. Age is told by the clock, which may be
wrong. If it has moved otherwise than the machine has run, nothing expires by its age before the machine has run for a day with
the new time."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import stat
import time
from typing import Any, Iterator, NamedTuple  # noqa: UP035  Python 3.8 knows no other place

from . import proc
from .journal import STASH, Stash
from .journal_log import SUFFIX, Entry, Journal, lstat, names_in, parent_of

_LOCK, _EXPIRED, _CLOCK = "undo.lock", "expired.json", "clock.json"
_DAY = 86_400.0
_TOLERANCE = 3_600.0


class Clock(NamedTuple):
    """`wall` is what the clock shows; `running` counts since the boot that `boot` names. Both are in seconds."""

    wall: float
    running: float
    boot: str

    @classmethod
    def now(cls) -> Clock:
        boot = ""
        with contextlib.suppress(OSError):  # another system than Linux
            boot = proc.boot_id()
        return cls(time.time(), time.clock_gettime(time.CLOCK_BOOTTIME), boot)


@contextlib.contextmanager
def locked(journal_folder: str) -> Iterator[None]:
    """One undo at a time, and nothing expires meanwhile."""
    os.makedirs(journal_folder, mode=0o700, exist_ok=True)
    path = os.path.join(journal_folder, _LOCK)
    with proc.closing(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)) as fd:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield


def expired_calls(journal_folder: str) -> set[int]:
    return set(_load(journal_folder, _EXPIRED, []))


def prune(
    journal_folder: str, keep_days: float, keep_bytes: int, clock: Clock | None = None, dry_run: bool = False
) -> dict[str, Any]:
    """Forget the oldest calls until the rest is young and small enough. A call that has not ended is never forgotten."""
    clock = clock or Clock.now()
    with locked(journal_folder):
        journal = Journal(journal_folder)
        journal.refresh()
        expired = expired_calls(journal_folder)
        calls = [call for call in journal.calls() if call not in expired and journal.end(call) is not None]
        kept = {call: _kept_files(journal_folder, journal.entries(call)) for call in calls}
        sizes = {call: sum(size for _, size in files) for call, files in kept.items()}
        rest = {path: (found, _size(path, found)) for path, found in unnamed(journal)}
        total = sum(sizes.values()) + sum(size for _, size in [*_logs(journal_folder), *rest.values()])
        is_trusted = _is_trusted(journal_folder, clock, save=not dry_run)
        oldest = clock.wall - keep_days * _DAY if is_trusted else 0.0
        gone: list[int] = []
        freed = 0
        for path, (found, size) in rest.items():
            is_settled = clock.wall - found.st_ctime > _TOLERANCE  # else its entry may be about to be written
            if is_settled and (found.st_ctime < oldest or total - freed > keep_bytes):
                freed += size
                if not dry_run:
                    _remove(path)
        for call in calls:
            if (journal.end(call) or 0) / 1e9 < oldest or total - freed > keep_bytes:
                gone.append(call)
                freed += sizes[call]
        if not dry_run:
            expired.update(gone)
            _save(journal_folder, _EXPIRED, sorted(expired))
            for path in (path for call in gone for path, _ in kept[call]):
                _remove(path)
            freed += _remove_logs(journal_folder, journal, expired)
            journal.refresh()
            _save(journal_folder, _EXPIRED, sorted(expired.intersection(journal.calls())))
    return {"calls": gone, "freed_bytes": freed, "kept_bytes": max(total - freed, 0), "clock_is_trusted": is_trusted}


def unnamed(journal: Journal) -> Iterator[tuple[str, os.stat_result]]:
    """What lies in a stash and no entry names. Its writer was killed before it wrote one, or it was moved there when a call was
    rolled back after a crash."""
    own = Stash(journal.folder, "").folder
    place = re.compile(rf"(?:{re.escape(own)}|.*/{re.escape(STASH)}-\d+)/[^/]+")
    entries = (entry for call in journal.calls() for entry in journal.entries(call))
    named = {found[0] for entry in entries for found in map(place.match, (entry.path, entry.second)) if found}
    for folder in {own, *map(parent_of, named)}:
        for name in names_in(folder):
            found = lstat(f"{folder}/{name}")
            if found is not None and f"{folder}/{name}" not in named and name != ".gitignore":
                yield f"{folder}/{name}", found


def is_prune_due(journal_folder: str) -> bool:
    """Whether the last time is an hour ago, or the clock was set back."""
    try:
        return not 0 <= time.time() - os.stat(os.path.join(journal_folder, _CLOCK)).st_mtime < _TOLERANCE
    except OSError:
        return os.path.isdir(journal_folder)


def _is_trusted(folder: str, clock: Clock, *, save: bool) -> bool:
    before = _load(folder, _CLOCK, {})
    wait_until = before.get("wait_until", 0.0)
    if before:
        went = clock.wall - before["wall"]
        ran = clock.running - before["running"]
        if before["boot"] == clock.boot:
            is_doubtful = abs(went - ran) > _TOLERANCE
        else:  # the machine may have been off for long, or its clock may have lost the time
            is_doubtful = bool(wait_until) or not 0 <= went <= _DAY
        if is_doubtful:
            wait_until = clock.running + _DAY
    is_trusted = bool(clock.running >= wait_until)
    if save:
        _save(folder, _CLOCK, {**clock._asdict(), "wait_until": 0.0 if is_trusted else wait_until})
    return is_trusted


def _kept_files(folder: str, entries: list[Entry]) -> list[tuple[str, int]]:
    """What lies in a stash for these entries, with the bytes that removing it would free."""
    holds = Stash(folder, "").holds
    found = [(entry.second, lstat(entry.second)) for entry in entries if entry.second and holds(entry.second)]
    return [(path, _size(path, there)) for path, there in found if there is not None]


def _size(path: str, found: os.stat_result) -> int:
    if stat.S_ISDIR(found.st_mode):
        below = (os.path.join(parent, name) for parent, _, names in os.walk(path) for name in names)
        return sum(_size(one, os.lstat(one)) for one in below)
    return found.st_size if stat.S_ISREG(found.st_mode) and found.st_nlink == 1 else 0


def _logs(folder: str) -> list[tuple[str, int]]:
    names = [name for name in os.listdir(folder) if name.endswith(SUFFIX)]
    return [(name, os.path.getsize(os.path.join(folder, name))) for name in names]


def _remove_logs(folder: str, journal: Journal, expired: set[int]) -> int:
    """Those that nobody writes to, and that are only about calls that have expired."""
    freed = 0
    for name, size in _logs(folder):
        path = os.path.join(folder, name)
        with open(path, "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            if journal.calls_in(name) <= expired:
                os.unlink(path)
                freed += size
    return freed


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):  # it is gone already
            os.unlink(path)


def _load(folder: str, name: str, default: Any) -> Any:
    try:
        with open(os.path.join(folder, name)) as file:
            return json.load(file)
    except (OSError, ValueError):
        return default


def _save(folder: str, name: str, content: Any) -> None:
    path = os.path.join(folder, name)
    with open(path + ".new", "w") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)

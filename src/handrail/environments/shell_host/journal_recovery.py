"""After a crash: calls that did not end are taken back, or kept as they are.

Only the log of a writer that is gone is looked at, and only one that was not closed in order. What a background process has
changed so far is kept in any case: its call was only to start it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from typing import Any

from . import journal_log as log
from .journal_expiry import locked
from .journal_log import OPEN_SUFFIX, SUFFIX, Entry, Journal, Meta, writer_name
from .journal_undo import Undo
from .stash import Stash

JOB_MARK = ".job"


def recover(journal_folder: str, on_crash: str = "undo") -> list[dict[str, Any]]:
    """Finish every call that its writer did not finish. Each gets its `call`, `outcome` ("rolled back" or "kept"), how many
    `changes` it had made, and the paths that `failed`. Can be repeated if it is interrupted itself."""
    if not any(name.endswith(OPEN_SUFFIX) for name in _names(journal_folder)):
        return []
    with locked(journal_folder):
        left = [name[: -len(OPEN_SUFFIX)] + SUFFIX for name in _names(journal_folder) if name.endswith(OPEN_SUFFIX)]
        dead = [name for name in left if not _is_written_to(os.path.join(journal_folder, name))]
        if not dead:
            return []
        journal = Journal(journal_folder)
        journal.refresh()
        return _finish(journal, dead, {name for name in left if name not in dead}, on_crash)


def _finish(journal: Journal, dead: list[str], alive: set[str], on_crash: str) -> list[dict[str, Any]]:
    unfinished: dict[int, list[str]] = {}  # logs by call
    for name in dead:
        for call in journal.unended_in(name):
            unfinished.setdefault(call, []).append(name)
    answers = []
    stash = Stash(journal.folder, writer_name())
    busy = {call for name in alive for call in journal.calls_in(name)}
    for call in sorted(set(unfinished) - busy, reverse=True):
        logs, entries = unfinished[call], journal.entries(call)
        answer: dict[str, Any] = {"call": call, "outcome": "kept", "changes": _count(entries), "failed": []}
        ending = [log.END]
        if on_crash == "undo" and not all(JOB_MARK in name for name in logs):
            undone = Undo(journal, stash).run(entries)
            answer.update(outcome="rolled back", failed=[path for path, _ in undone.failed])
            ending.insert(0, log.ROLLED_BACK)
        now = Meta(mtime=time.time_ns())
        for name in logs:
            journal.complete(name, [log.encode(call, kind, "", meta=now) for kind in ending])
        answers.append(answer)
    for name in dead:
        if not busy.intersection(journal.calls_in(name)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(journal.folder, name[: -len(SUFFIX)] + OPEN_SUFFIX))
    return answers


def _count(entries: list[Entry]) -> int:
    return sum(entry.kind not in (log.TIMES, log.HOST, log.UNSAVED) for entry in entries)


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _is_written_to(path: str) -> bool:
    """Whether somebody holds the lock of a writer. A log that its writer had not yet made is not there."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False

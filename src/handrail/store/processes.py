"""What is known of background processes, one private file each, so that the next runtime can find them again.

Several runtimes may use the same folder. A file is written beside and renamed, so that a reader sees the old or the new.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

_VALID_ID = re.compile(r"proc_[0-9a-f]{8}")
_RECORD, _OWED, _NEW = ".json", ".owed", ".new-"


class ProcessRecord(NamedTuple):
    """One process. Times are seconds since 1970; `ended_at` is None as long as nobody has seen its end."""

    id: str
    process_id: str  # its name in its environment
    pid: int
    command: str
    started_at: float
    task_id: str
    session_id: str | None
    environment: str  # for people; `settings` is what it is opened with
    settings: dict[str, Any]
    survives: bool
    has_pty: bool
    rows: int
    columns: int
    watch_patterns: tuple[str, ...]
    watched_to: int  # where in its log the watch goes on
    owner: str  # the runtime that looks after it, as `owners` names it
    state: str = "running"
    exit_code: int | None = None
    ended_at: float | None = None
    reason: str = ""


class ProcessRecords:
    """A folder of them. A record that cannot be read is passed over."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._read: dict[str, tuple[tuple[int, int], ProcessRecord]] = {}

    def new_id(self) -> str:
        return f"proc_{os.urandom(4).hex()}"

    def put(self, record: ProcessRecord) -> None:
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        temporary = os.path.join(self._folder, f"{_NEW}{os.urandom(6).hex()}")
        try:
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                json.dump(record._asdict(), file)
            os.replace(temporary, self._path(record.id, _RECORD))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise

    def update(self, record: ProcessRecord) -> None:
        """The same for one that was put before; one that somebody has removed since does not come back."""
        if os.path.exists(self._path(record.id, _RECORD)):
            self.put(record)

    def get(self, id: str) -> ProcessRecord | None:  # noqa: A002  what it is
        """None when there is none of that name."""
        if not _VALID_ID.fullmatch(id):
            return None
        path = self._path(id, _RECORD)
        try:
            found = os.stat(path)
            changed = (
                found.st_mtime_ns,
                found.st_ino,
            )  # the clock of files is coarse, but each write is a file of its own
            known = self._read.get(id)
            if known is None or known[0] != changed:
                with open(path, encoding="utf-8") as file:
                    known = (changed, _record(json.load(file)))
                self._read[id] = known
        except (OSError, ValueError, TypeError, KeyError):
            self._read.pop(id, None)
            return None
        return known[1]

    def all(self) -> list[ProcessRecord]:
        """The oldest first."""
        try:
            names = os.listdir(self._folder)
        except FileNotFoundError:
            return []
        ids = [name.removesuffix(_RECORD) for name in names if name.endswith(_RECORD)]
        return sorted(filter(None, map(self.get, ids)), key=lambda record: record.started_at)

    def remove(self, id: str) -> None:  # noqa: A002
        self._read.pop(id, None)
        for kind in (_OWED, _RECORD):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path(id, kind))

    # The notice of its end, which is given once, by whichever runtime comes first

    def owe_notice(self, id: str) -> None:  # noqa: A002
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        os.close(os.open(self._path(id, _OWED), os.O_WRONLY | os.O_CREAT, 0o600))

    def owes_notice(self, id: str) -> bool:  # noqa: A002
        return os.path.exists(self._path(id, _OWED))

    def claim_notice(self, id: str) -> bool:  # noqa: A002
        """Whether the caller is the one to give it."""
        try:
            os.unlink(self._path(id, _OWED))
        except FileNotFoundError:
            return False
        return True

    def _path(self, id: str, kind: str) -> str:  # noqa: A002
        return os.path.join(self._folder, id + kind)


def _record(fields: dict[str, Any]) -> ProcessRecord:
    fields["watch_patterns"] = tuple(fields["watch_patterns"])
    return ProcessRecord(**fields)

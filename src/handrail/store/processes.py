"""Records of background processes, one private file each, so that the next runtime can find them again. Several runtimes may
use the same folder. A file is written to a temporary name and renamed: a reader sees the old or the new."""

import contextlib
import json
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from ..config.paths import replace_private

_VALID_ID = re.compile(r"proc_[0-9a-f]{8}")
_RECORD, _OWED = ".json", ".owed"


class ProcessRecord(NamedTuple):
    """One process. Times are seconds since 1970; `ended_at` is None until its end was seen."""

    id: str
    process_id: str  # its name in its environment
    pid: int
    command: str
    started_at: float
    task_id: str
    session_id: str | None
    environment: str  # for display; `settings` is what it is opened with
    settings: dict[str, Any]
    survives: bool
    has_pty: bool
    rows: int
    columns: int
    watch_patterns: tuple[str, ...]
    watched_to: int  # where in its log the watch continues
    owner: str  # the id of the runtime that supervises it
    state: str = "running"
    exit_code: int | None = None
    ended_at: float | None = None
    reason: str = ""


class ProcessRecords:
    """A folder of records. One that cannot be read is skipped."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._read: dict[str, tuple[tuple[int, int], ProcessRecord]] = {}

    def new_id(self) -> str:
        return f"proc_{os.urandom(4).hex()}"

    def put(self, record: ProcessRecord) -> None:
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        replace_private(self._path(record.id, _RECORD), json.dumps(record._asdict()))

    def update(self, record: ProcessRecord) -> None:
        """Write a record again, unless it was removed since."""
        if os.path.exists(self._path(record.id, _RECORD)):
            self.put(record)

    def get(self, record_id: str) -> ProcessRecord | None:
        """None when there is no such record."""
        if not _VALID_ID.fullmatch(record_id):
            return None
        path = self._path(record_id, _RECORD)
        try:
            found = os.stat(path)
            changed = (found.st_mtime_ns, found.st_ino)  # file times are coarse, but each write makes a new file
            known = self._read.get(record_id)
            if known is None or known[0] != changed:
                with open(path, encoding="utf-8") as file:
                    fields = json.load(file)
                known = (changed, ProcessRecord(**{**fields, "watch_patterns": tuple(fields["watch_patterns"])}))
                self._read[record_id] = known
        except (OSError, ValueError, TypeError, KeyError):
            self._read.pop(record_id, None)
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

    def remove(self, record_id: str) -> None:
        self._read.pop(record_id, None)
        for kind in (_OWED, _RECORD):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path(record_id, kind))

    # The notice of its end, which is given once, by the first runtime
    def owe_notice(self, record_id: str) -> None:
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        os.close(os.open(self._path(record_id, _OWED), os.O_WRONLY | os.O_CREAT, 0o600))

    def owes_notice(self, record_id: str) -> bool:
        return os.path.exists(self._path(record_id, _OWED))

    def claim_notice(self, record_id: str) -> bool:
        """Whether the caller is the one to give the notice."""
        try:
            os.unlink(self._path(record_id, _OWED))
        except FileNotFoundError:
            return False
        return True

    def _path(self, record_id: str, kind: str) -> str:
        return os.path.join(self._folder, record_id + kind)

"""The calls that changed something, or may have: who made them, how they were watched, what became of them; and their numbers."""

import fcntl
import json
import os
import struct
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import CallNotFound, StoreError
from .database import Database

STORE_NAME = "calls.db"
_MAX_ROWS = 50_000
_ROWS_BETWEEN_CUTS = 500
_NUMBER = struct.Struct("<Q")
_JSON = ("settings", "counts", "approval", "left_running")


class CallRecord(NamedTuple):
    """One call. Times are seconds since 1970; `ended` is None as long as something of it runs. `coverage` says what of it was
    watched: "full", "file tools only" or "none", and `reason` why not all. `folder` is where it was made: the working directory
    of its command, or for another machine's that of the program that made it here. `undoes` is the call that this one takes
    back, `undone_by` the one that took this back; 0 means none. `outcome` is empty, or what is to be told of a call that was
    interrupted; `is_told` says that its session knows. `left_running` are command lines."""

    number: int
    session: str | None
    task: str | None
    tool: str
    head: str
    folder: str
    begun: float
    environment: str = "local"
    settings: Mapping[str, Any] = {}
    ended: float | None = None
    coverage: str = "full"
    reason: str = ""
    counts: Mapping[str, int] = {}
    hosts: int = 0
    digest: str = ""
    approval: Mapping[str, Any] = {}
    undoes: int = 0
    undone_by: int = 0
    outcome: str = ""
    is_told: bool = True
    left_running: Sequence[str] = ()

    @property
    def is_changing(self) -> bool:
        return any(self.counts.values())

    @property
    def is_pruned(self) -> bool:
        """Whether the journal has forgotten what it changed."""
        return self.is_changing and not self.digest


class CallRecords:
    """The table of calls; that of their receipts is in the same file. `path` None keeps them in memory."""

    def __init__(self, path: Path | None = None) -> None:
        self.database = Database(path, Path(__file__).with_suffix(".sql"))

    def put(self, record: CallRecord) -> None:
        """Add a call, or replace what was known of it."""
        row = record._asdict() | {name: json.dumps(getattr(record, name)) for name in _JSON}
        names = ", ".join(row)
        with self.database.transaction() as connection:
            query = f"INSERT OR REPLACE INTO calls ({names}) VALUES ({', '.join('?' * len(row))})"
            connection.execute(query, tuple(row.values()))
            if record.number % _ROWS_BETWEEN_CUTS == 0:
                last = "SELECT number FROM calls ORDER BY number DESC LIMIT 1 OFFSET ?"
                connection.execute(f"DELETE FROM calls WHERE number <= ({last})", (_MAX_ROWS,))

    def settle(self, record: CallRecord) -> bool:
        """Write how a call ended that went on in the background. False if somebody else has."""
        values = (record.ended, json.dumps(record.counts), record.hosts, record.digest, record.number)
        query = "UPDATE calls SET ended = ?, counts = ?, hosts = ?, digest = ? WHERE number = ? AND ended IS NULL"
        return self.database.change(query, values) > 0

    def get(self, number: int) -> CallRecord:
        """Raises CallNotFound."""
        found = self.find(number)
        if found is None:
            raise CallNotFound(f"no call {number} has changed anything; `handrail calls --all` lists those that have")
        return found

    def find(self, number: int) -> CallRecord | None:
        rows = self.database.rows("SELECT * FROM calls WHERE number = ?", (number,))
        return _record(rows[0]) if rows else None

    def latest(self, count: int, *, session: str | None = None, folder: str = "") -> list[CallRecord]:
        """Those of a session, and of a folder with those below it, if they are given."""
        query = (
            "SELECT * FROM calls WHERE (?1 IS NULL OR session = ?1) AND (?2 = '' OR folder = ?2 OR "
            "substr(folder, 1, length(?3)) = ?3) ORDER BY number DESC LIMIT ?4"
        )
        rows = self.database.rows(query, (session, folder, folder.rstrip("/") + "/", count))
        return [_record(row) for row in rows]

    def untold(self, session: str) -> list[CallRecord]:
        """What a session has not been told yet of its interrupted calls. It counts as told then."""
        rows = self.database.rows("SELECT * FROM calls WHERE session = ? AND is_told = 0 ORDER BY number", (session,))
        if rows:
            self.database.change("UPDATE calls SET is_told = 1 WHERE session = ?", (session,))
        return [_record(row) for row in rows]

    def set_pruned(self, numbers: Sequence[int]) -> None:
        query = "UPDATE calls SET digest = '' WHERE number IN (SELECT value FROM json_each(?))"
        self.database.change(query, (json.dumps(numbers),))

    def set_undone(self, number: int, by: int) -> None:
        self.database.change("UPDATE calls SET undone_by = ? WHERE number = ?", (by, number))


def _record(row: Any) -> CallRecord:
    fields = {name: row[name] for name in CallRecord._fields}
    fields |= {name: json.loads(fields[name]) for name in _JSON}
    return CallRecord(**fields | {"is_told": bool(fields["is_told"])})


class CallNumbers:
    """A file with the last number, locked for the time of a read and a write: a few microseconds per call."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()
        self._fd, self._process = -1, 0

    def next(self) -> int:
        with self._lock:
            try:
                # Opened anew after a fork: a lock belongs to whoever opened the file, and would be shared.
                if self._fd < 0 or self._process != os.getpid():
                    self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                    self._process = os.getpid()
                fcntl.flock(self._fd, fcntl.LOCK_EX)
                try:
                    content = os.pread(self._fd, _NUMBER.size, 0)
                    number = (_NUMBER.unpack(content)[0] if len(content) == _NUMBER.size else 0) + 1
                    os.pwrite(self._fd, _NUMBER.pack(number), 0)
                finally:
                    fcntl.flock(self._fd, fcntl.LOCK_UN)
            except OSError as error:
                why = f"{self._path} cannot be used: {error.strerror}; see that its folder can be written"
                raise StoreError(why) from None
        return int(number)

    def close(self) -> None:
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
            self._fd = -1

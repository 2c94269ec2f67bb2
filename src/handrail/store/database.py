"""One SQLite file that threads and processes share: private, in WAL mode, with a schema version."""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import StoreError

if TYPE_CHECKING:
    import sqlite3

# A writer locks the file for less than a millisecond; a stopped one must not block the others for good.
_BUSY_SECONDS = 10.0
_POLL_SECONDS = 0.005
_MIN_FREE_BYTES = 1 << 16
_making = threading.Lock()


class Database:
    """Opened when it is first used. `steps` are the migration scripts, in order, or the file that has them: a database of an
    earlier version runs only the later ones."""

    def __init__(self, path: Path | None, steps: Sequence[str] | Path) -> None:
        self.path = path
        self._given_steps = steps
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._process = 0

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All of it or nothing, with no other writer in between."""
        import sqlite3

        with self._lock:
            try:
                connection = self._open()
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:  # a full disk has ended it already
                        connection.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise self._problem(error) from None

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows that a query finds, with access by column name."""
        import sqlite3

        with self._lock:
            try:
                return self._open().execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise self._problem(error) from None

    def version_of_data(self) -> int:
        """A number that changes when another process, or another object here, has written. Cheap enough to poll."""
        return int(self.rows("PRAGMA data_version")[0][0])

    def close(self) -> None:
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and self._process == os.getpid():
            return self._connection
        import sqlite3

        name = ":memory:" if self.path is None else str(self.path)
        if self.path is not None:
            _make_private(self.path)
        connection = sqlite3.connect(name, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            connection.row_factory = sqlite3.Row
            _use_wal(connection)
            connection.execute("PRAGMA synchronous=NORMAL")
            self._migrate(connection)
        except BaseException:
            connection.close()
            raise
        # After a fork the parent's connection is not ours to use, nor to close.
        self._connection, self._process = connection, os.getpid()
        return connection

    @cached_property
    def _steps(self) -> Sequence[str]:
        return read_steps(self._given_steps) if isinstance(self._given_steps, Path) else self._given_steps

    def _migrate(self, connection: sqlite3.Connection) -> None:
        if _version(connection) == len(self._steps):
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            found = _version(connection)  # another process may have been faster
            if found > len(self._steps):
                raise StoreError(
                    f"{self.path} was written by a later version of Handrail; use that one, or move it away"
                )
            for step in self._steps[found:]:
                for statement in filter(str.strip, step.split(";")):
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version={len(self._steps)}")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")

    def _problem(self, error: Exception) -> StoreError:
        if "disk is full" in str(error) or (self.path is not None and _has_no_room(self.path)):
            reason, fix = "the disk is full", "make room on its disk"
        else:
            reason, fix = str(error), "repair it, or move it away"
        return StoreError(f"{self.path or 'the store in memory'} cannot be used: {reason}; {fix}")


def read_steps(file: Path) -> list[str]:
    """The migration scripts of a file: a line `-- step` is before each."""
    return re.split(r"^-- step.*$", file.read_text("utf-8"), flags=re.MULTILINE)[1:]


def _use_wal(connection: sqlite3.Connection) -> None:
    """Retries: of two processes that switch a new file to WAL at the same moment, SQLite refuses one to avoid a deadlock."""
    import sqlite3

    end = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
        time.sleep(_POLL_SECONDS)


def _has_no_room(path: Path) -> bool:
    """SQLite says "disk I/O error" when it cannot make the files beside a store any longer."""
    try:
        found = os.statvfs(path.parent)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < _MIN_FREE_BYTES


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _make_private(path: Path) -> None:
    """Only one that is not there yet is opened: whoever closes a file loses all locks that their process has on it, and a store
    without its locks goes on writing where nobody else looks."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _making, contextlib.suppress(FileExistsError):
            if not path.exists():
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StoreError(f"{path} cannot be opened: {error.strerror}; see that its folder can be written") from None

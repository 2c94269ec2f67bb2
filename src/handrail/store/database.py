"""One SQLite file that threads and processes share: private, in WAL mode, with a schema version. A process that an agent's tool
started reads the file and never changes it: what it writes goes to a copy in memory, and is gone when it ends."""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from ..base.own_process import started_by_agent
from ..base.workers import pool
from ..config.paths import make_private
from ..errors import StoreError

if TYPE_CHECKING:
    import sqlite3

# A writer locks the file for less than a millisecond; a stopped one must not block the others for good.
_BUSY_SECONDS, _POLL_SECONDS = 10.0, 0.005
_MIN_FREE_BYTES = 1 << 16
# A larger store is not copied for an agent's process, which then has an empty one.
_MAX_COPY_BYTES = 64 << 20
# So many are committed together; other processes wait for the lock meanwhile.
_MAX_WRITES = 512
_OPTIONS: dict[str, Any] = {"timeout": _BUSY_SECONDS, "isolation_level": None, "check_same_thread": False}
# How a transaction begins, is committed and taken back.
_WHOLE = ("BEGIN IMMEDIATE", "COMMIT", "ROLLBACK")
_NESTED = ("SAVEPOINT inner_write", "RELEASE inner_write", "ROLLBACK TO inner_write")
_making = threading.Lock()
_opened: WeakSet[Database] = WeakSet()
T = TypeVar("T")


class Database:
    """Opened when it is first used. `steps` are the migration scripts, in order, or the file that has them: a database of an
    earlier version runs only the later ones. `durable`: what is committed survives a loss of power."""

    def __init__(self, path: Path | None, steps: Sequence[str] | Path, *, durable: bool = False) -> None:
        self.path, self._durable = path, durable
        self._given_steps = steps
        self._connection: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._process, self._only_reads = 0, False
        self._start_over()
        _opened.add(self)

    def _start_over(self) -> None:
        """Also after a fork: what waits is the parent's to write, and no thread here will release a lock."""
        self._lock, self._reading, self._queueing = threading.RLock(), threading.Lock(), threading.Lock()
        self._queue: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._is_writing = False
        self._writer = 0  # the thread that is in a transaction

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All of it or nothing, with no other writer in between. One inside another is committed with that."""
        import sqlite3

        with self._lock:
            is_inner = self._writer != 0
            begin, commit, undo = _NESTED if is_inner else _WHOLE
            try:
                connection = self._open(writes=True)
                connection.execute(begin)
                self._writer = threading.get_ident()
                try:
                    yield connection
                    connection.execute(commit)
                except BaseException:
                    if connection.in_transaction:  # a full disk has ended it already
                        connection.execute(undo)
                        if is_inner:
                            connection.execute(commit)
                    raise
                finally:
                    self._writer = self._writer if is_inner else 0
            except (sqlite3.Error, UnicodeError) as error:  # the message itself may hold what is damaged
                raise self._problem(error) from None

    def change(self, statement: str, values: Sequence[Any] = ()) -> int:
        """A transaction of one statement, or a part of this thread's. Returns how many rows it has changed."""
        if self._writer == threading.get_ident() and self._connection is not None:
            import sqlite3

            try:
                return self._connection.execute(statement, values).rowcount
            except (sqlite3.Error, UnicodeError) as error:  # it has changed nothing
                raise self._problem(error) from None
        with self.transaction() as connection:
            return connection.execute(statement, values).rowcount

    def write(self, work: Callable[..., T], *args: Any) -> Future[T]:
        """Run what writes soon, on another thread: all that waits is committed together, at the price of one. The future is
        done when it is."""
        future: Future[T] = Future()
        with self._queueing:
            self._queue.append((partial(work, *args), future))
            was_writing, self._is_writing = self._is_writing, True
        if not was_writing:
            pool.submit(self._write_queue)
        return future

    def _write_queue(self) -> None:
        while True:
            with self._queueing:
                batch = [self._queue.popleft() for _ in range(min(len(self._queue), _MAX_WRITES))]
                if not batch:
                    self._is_writing = False
                    return
            wanted = [(work, future) for work, future in batch if future.set_running_or_notify_cancel()]
            try:
                with self.transaction() as connection:
                    done = [(future, self._outcome(connection, work)) for work, future in wanted]
            except BaseException as error:  # noqa: BLE001  carried over to whoever waits
                done = [(future, partial(_raise, error)) for _, future in wanted]
            for future, outcome in done:
                try:
                    future.set_result(outcome())
                except BaseException as error:  # noqa: BLE001  carried over to whoever waits
                    future.set_exception(error)

    @staticmethod
    def _outcome(connection: sqlite3.Connection, work: Callable[[], T]) -> Callable[[], T]:
        """What is to be returned, or raised, once it is committed. What fails is taken back, and not what is beside it."""
        try:
            value = work()
        except BaseException as error:
            if not connection.in_transaction:  # all of it is gone
                raise
            return partial(_raise, error)
        return lambda: value

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows that a query finds, with access by column name. They are as the last commit left them, unless this thread
        is in a transaction."""
        import sqlite3

        try:
            if self._reader is not None and self._process == os.getpid() and self._writer != threading.get_ident():
                with self._reading:
                    return self._reader.execute(query, values).fetchall()
            with self._lock:
                return self._open().execute(query, values).fetchall()
        except (sqlite3.Error, UnicodeError) as error:  # the message itself may hold what is damaged
            raise self._problem(error) from None

    def version_of_data(self) -> int:
        """A number that changes when another process, or another object here, has written. Cheap enough to poll."""
        return int(self.rows("PRAGMA data_version")[0][0])

    def close(self) -> None:
        with self._lock, self._reading:
            # The last to close, which must be able to write, removes the WAL.
            for connection in (self._reader, self._connection):
                if connection is not None and self._process == os.getpid():
                    connection.close()
            self._connection = self._reader = None

    def _open(self, *, writes: bool = False) -> sqlite3.Connection:
        if self._connection is None or self._process != os.getpid():
            # After a fork the parent's connection is not ours to use, nor to close.
            self._connection, self._reader = self._connected(), None
            self._process = os.getpid()
            if self._durable and self.path is not None and not self._only_reads:  # reading waits for no commit
                self._reader = _reading(self.path, _OPTIONS)
        if writes and self._only_reads:
            self._connection = self._copied(self._connection)
        return self._connection

    def _connected(self) -> sqlite3.Connection:
        import sqlite3

        folder = self.path.parent if self.path is not None else Path()
        is_closed = folder.is_dir() and not os.access(folder, os.W_OK)
        self._only_reads = self.path is not None and (started_by_agent() or is_closed)
        if self._only_reads and self.path is not None and self.path.exists():
            reader = _reading(self.path, _OPTIONS)
            # The steps that are missing run in the copy.
            return reader if _version(reader) == len(self._steps) else self._copied(reader)
        if self.path is not None and not self._only_reads:
            _make_private(self.path)
        name = ":memory:" if self.path is None or self._only_reads else self.path
        connection: sqlite3.Connection = sqlite3.connect(name, **_OPTIONS)
        try:
            connection.row_factory = sqlite3.Row
            _use_wal(connection)
            connection.execute(f"PRAGMA synchronous={'FULL' if self._durable else 'NORMAL'}")
            self._migrate(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    @cached_property
    def _steps(self) -> Sequence[str]:
        return read_steps(self._given_steps) if isinstance(self._given_steps, Path) else self._given_steps

    def _copied(self, reader: sqlite3.Connection) -> sqlite3.Connection:
        """A copy in memory, to which this process may write. Only an agent's has that: others would lose what they write."""
        import sqlite3

        if not started_by_agent():
            reader.close()
            raise StoreError(f"{self.path} cannot be written: its folder is read-only")
        copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        copy.row_factory = sqlite3.Row
        size = [int(reader.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "page_size")]
        if size[0] * size[1] <= _MAX_COPY_BYTES:
            reader.backup(copy)
        reader.close()
        self._migrate(copy)
        self._only_reads = False
        return copy

    def _migrate(self, connection: sqlite3.Connection) -> None:
        if _version(connection) == len(self._steps):
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            found = _version(connection)  # another process may have been faster
            if found > len(self._steps):
                why = f"{self.path} was written by a later version of Handrail; use that one, or move it away"
                raise StoreError(why)
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


def _after_fork() -> None:
    for database in _opened:
        database._start_over()


os.register_at_fork(after_in_child=_after_fork)


def _raise(error: BaseException) -> Any:
    raise error


@contextlib.contextmanager
def reading_entry(what: str) -> Iterator[None]:
    """Around what makes a value of a row: one that cannot be read is a problem of the store."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = f"{type(error).__name__}: {error}; repair the file, or move it away"
        raise StoreError(f"{what} in the store is damaged: {why}") from None


def read_steps(file: Path) -> list[str]:
    """The migration scripts of a file: a line `-- step` is before each."""
    return re.split(r"^-- step.*$", file.read_text("utf-8"), flags=re.MULTILINE)[1:]


def _reading(path: Path, options: dict[str, Any]) -> sqlite3.Connection:
    """A connection that cannot write. In a read-only folder SQLite cannot make the files that WAL mode needs; if they are not
    there, then nobody writes, and the file alone is the whole of it."""
    import sqlite3

    address = path.absolute().as_uri()
    for mode in ("mode=ro", "mode=ro&immutable=1"):
        connection: sqlite3.Connection = sqlite3.connect(f"{address}?{mode}", uri=True, **options)
        try:
            connection.row_factory = sqlite3.Row
            _version(connection)
            return connection
        except sqlite3.OperationalError:
            connection.close()
            if "immutable" in mode:
                raise
    raise AssertionError("one of the two returns or raises")


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
        make_private(path.parent)
        with _making, contextlib.suppress(FileExistsError):
            if not path.exists():
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StoreError(f"{path} cannot be opened: {error.strerror}; see that its folder can be written") from None

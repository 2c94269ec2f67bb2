"""The truth about a batch: its tasks, attempts, leases, the journal of calls, results and questions. The driver owns it. An
attempt's number is its fence: what comes from another attempt than the task's current one is refused."""

import contextlib
import json
import os
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ..base.lazy_module import extra_module
from ..errors import Fenced, StoreError
from ..types import JsonDict
from .database import Database, read_steps

SCHEMA = Path(__file__).with_name("ledger.sql")
WAITING, RUNNING, DONE, FAILED = "waiting", "running", "done", "failed"
_CHUNK = 500
_HELD = "SELECT 1 FROM tasks WHERE id = ? AND attempt = ? AND state = 'running'"


class JournalRow(NamedTuple):
    """A call of an earlier attempt. `asked`: somebody allowed it, so that it acts on more than its own environment."""

    state: str
    asked: bool
    result: str


class Lease(NamedTuple):
    """A task that a worker has got, with what earlier attempts have recorded."""

    task: str
    attempt: int
    body: str
    journal: Mapping[str, JournalRow]
    replies: Mapping[str, str]


class Connection(Protocol):
    """What `sqlite3` and `psycopg` have in common; the marks in queries are `?`."""

    def execute(self, query: str, values: Any = (), /) -> Any: ...


class SqlLedger(ABC):
    """A ledger is one over a database that has transactions. `begin` survives a loss of power, all else a killed process."""

    @abstractmethod
    def transaction(self, *, durable: bool = False) -> AbstractContextManager[Connection]: ...

    @abstractmethod
    def close(self) -> None: ...

    def _rows(self, query: str, *values: Any) -> list[Any]:
        with self.transaction() as connection:
            return list(connection.execute(query, values).fetchall())

    def _put(self, table: str, key: str, *values: Any) -> None:
        with self.transaction() as connection:
            connection.execute(f"DELETE FROM {table} WHERE {key} = ?", values[:1])
            connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)

    def add(self, tasks: Iterable[tuple[str, str]]) -> int:
        """Add tasks, each an id and its text in JSON. Returns how many there are; all of them are added or none."""
        number = 0
        with self.transaction() as connection:
            for number, (task, body) in enumerate(tasks, 1):
                names = "id, number, body, state, attempt, failures, worker, result"
                values = (task, number, body, WAITING, 0, 0, "", "")
                connection.execute(f"INSERT INTO tasks ({names}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
        return number

    def lease(self, worker: str, count: int) -> list[Lease]:
        """Tasks that wait, each with its next attempt."""
        with self.transaction() as connection:
            query = "SELECT id, attempt, body FROM tasks WHERE state = 'waiting' ORDER BY number LIMIT ?"
            rows = connection.execute(query, (count,)).fetchall()
            leases = []
            for task, attempt, body in rows:
                taken = "UPDATE tasks SET state = 'running', attempt = ?, worker = ? WHERE id = ?"
                connection.execute(taken, (attempt + 1, worker, task))
                query = "SELECT call, state, asked, result FROM journal WHERE task = ?"
                calls = connection.execute(query, (task,)).fetchall()
                journal = {call: JournalRow(state, bool(asked), result) for call, state, asked, result in calls}
                replies = connection.execute("SELECT request, reply FROM replies WHERE task = ?", (task,)).fetchall()
                leases.append(Lease(task, attempt + 1, body, journal, {row[0]: row[1] for row in replies}))
            return leases

    def held(self, worker: str) -> set[tuple[str, int]]:
        """The tasks and attempts that are the worker's now."""
        rows = self._rows("SELECT id, attempt FROM tasks WHERE state = 'running' AND worker = ?", worker)
        return {(row[0], row[1]) for row in rows}

    def give_back(self, worker: str, why: str, attempts: int) -> int:
        """Let others have what a lost worker had; a task that has cost `attempts` workers fails. 0 attempts: none does. An
        empty name means all workers."""
        with self.transaction() as connection:
            query = "SELECT id, attempt, failures FROM tasks WHERE state = 'running' AND (? = '' OR worker = ?)"
            rows = connection.execute(query, (worker, worker)).fetchall()
            for task, attempt, failures in rows:
                _failed(connection, task, failures, {"attempt": attempt, "error": why}, attempts)
        return len(rows)

    def begin(self, task: str, attempt: int, call: str, tool: str, asked: bool) -> None:
        """Raises Fenced. A call that was done before, and only runs to make its environment again, keeps its record."""
        with self.transaction(durable=True) as connection:
            _check(connection, task, attempt)
            connection.execute("DELETE FROM journal WHERE task = ? AND call = ? AND state = 'begun'", (task, call))
            row = (task, call, attempt, tool, "begun", int(asked), "")
            connection.execute("INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", row)

    def end(self, task: str, attempt: int, call: str, result: str) -> None:
        """Raises Fenced."""
        with self.transaction() as connection:
            _check(connection, task, attempt)
            query = "UPDATE journal SET state = 'done', result = ? WHERE task = ? AND call = ? AND attempt = ?"
            connection.execute(query, (result, task, call, attempt))

    def keep_reply(self, task: str, attempt: int, request: str, reply: str) -> None:
        """Raises Fenced."""
        with self.transaction() as connection:
            _check(connection, task, attempt)
            connection.execute("DELETE FROM replies WHERE task = ? AND request = ?", (task, request))
            connection.execute("INSERT INTO replies VALUES (?, ?, ?)", (task, request, reply))

    def finish(self, task: str, attempt: int, result: JsonDict) -> bool:
        """False, and nothing changes, for an attempt that has lost its task."""
        with self.transaction() as connection:
            held = connection.execute(_HELD, (task, attempt)).fetchone() is not None
            if held:
                _ended(connection, task, DONE, result)
        return held

    def fail(self, task: str, attempt: int, result: JsonDict, attempts: int) -> bool:
        """As `finish`, for an attempt that failed: another follows, up to `attempts`."""
        with self.transaction() as connection:
            query = _HELD.replace("1", "failures", 1)
            found = connection.execute(query, (task, attempt)).fetchone()
            if found is not None:
                _failed(connection, task, found[0], result, attempts)
        return found is not None

    def counts(self) -> dict[str, int]:
        rows = self._rows("SELECT state, count(*) FROM tasks GROUP BY state")
        return {WAITING: 0, RUNNING: 0, DONE: 0, FAILED: 0, **{row[0]: row[1] for row in rows}}

    def totals(self) -> tuple[float, int, float | None, int]:
        """The sum of the rewards, how many there are, the cost (None if no price is known), and the tokens."""
        sums = "sum(reward), count(reward), sum(cost), sum(tokens)"
        ((rewards, scored, cost, tokens),) = self._rows(f"SELECT {sums} FROM tasks WHERE state IN ('done', 'failed')")
        return rewards or 0.0, scored, cost, int(tokens or 0)

    def results(self) -> Iterator[JsonDict]:
        """One per task, in the order of the file, read in parts."""
        last, names = 0, "number, id, state, attempt, worker, body, result"
        while rows := self._rows(f"SELECT {names} FROM tasks WHERE number > ? ORDER BY number LIMIT ?", last, _CHUNK):
            for _, task, state, attempt, worker, body, result in rows:
                about = {"id": task, "state": state, "attempt": attempt, "worker": worker}
                data = json.loads(body).get("data")
                yield {**about, **({} if data is None else {"data": data}), **json.loads(result or "{}")}
            last = rows[-1][0]

    def failed(self, count: int) -> list[JsonDict]:
        """The tasks that failed for good, and why; the first ones in the order of the file."""
        query = "SELECT id, attempt, worker, result FROM tasks WHERE state = 'failed' ORDER BY number LIMIT ?"
        rows = self._rows(query, count)
        return [
            {"id": row[0], "attempt": row[1], "worker": row[2], "error": str(json.loads(row[3]).get("error", ""))}
            for row in rows
        ]

    def note_question(self, request: str, task: str, attempt: int) -> None:
        self._put("questions", "request", request, task, attempt)

    def asker(self, request: str) -> tuple[str, int] | None:
        """The task and attempt that asked it last."""
        rows = self._rows("SELECT task, attempt FROM questions WHERE request = ?", request)
        return (rows[0][0], rows[0][1]) if rows else None

    def fact(self, name: str) -> Any:
        rows = self._rows("SELECT value FROM facts WHERE name = ?", name)
        return json.loads(rows[0][0]) if rows else None

    def set_fact(self, name: str, value: Any) -> None:
        self._put("facts", "name", name, json.dumps(value))


class SqliteLedger(SqlLedger):
    """In a file; None keeps it in memory. Other processes may read it, and ask for a stop."""

    def __init__(self, path: Path | None) -> None:
        self._database = Database(path, SCHEMA)
        self._durable = self._database if path is None else Database(path, SCHEMA, durable=True)

    def transaction(self, *, durable: bool = False) -> AbstractContextManager[Connection]:
        return (self._durable if durable else self._database).transaction()

    def close(self) -> None:
        self._database.close()
        self._durable.close()


def work_folder(run: str) -> Path:
    """Where the sessions of a batch that name no folder work, on any machine: the same path for every attempt. Private."""
    folder = Path(tempfile.gettempdir()) / f"handrail-batch-{run}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.geteuid():
        raise StoreError(f"{folder} belongs to somebody else")
    return folder


def _check(connection: Connection, task: str, attempt: int) -> None:
    if connection.execute(_HELD, (task, attempt)).fetchone() is None:
        raise Fenced(f"attempt {attempt} has lost the task {task}: it is over, or another worker has it")


def _failed(connection: Connection, task: str, failures: int, result: JsonDict, attempts: int) -> None:
    if 0 < attempts <= failures + 1:
        _ended(connection, task, FAILED, result)
    else:
        query = "UPDATE tasks SET state = 'waiting', failures = ?, result = ? WHERE id = ?"
        connection.execute(query, (failures + bool(attempts), json.dumps(result), task))


def _ended(connection: Connection, task: str, state: str, result: JsonDict) -> None:
    counted = [result.get(name) for name in ("reward", "cost", "tokens")]
    query = "UPDATE tasks SET state = ?, result = ?, reward = ?, cost = ?, tokens = ? WHERE id = ?"
    connection.execute(query, (state, json.dumps(result), *counted, task))
    connection.execute("DELETE FROM replies WHERE task = ?", (task,))


class PostgresLedger(SqlLedger):
    """In PostgreSQL, each batch in a schema of its own: for a driver whose machine may be lost. `url` as libpq takes it. Raises
    StoreError; a connection that broke is made again by the next use."""

    def __init__(self, url: str, run: str) -> None:
        self._psycopg = extra_module("psycopg", "postgres", "a ledger in PostgreSQL", StoreError)
        self._url, self._schema = url, f"handrail_batch_{run}"
        self._lock = threading.RLock()
        self._connection: Any = None

    @contextlib.contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[Connection]:
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = self._connected()
                with self._connection.transaction():
                    self._connection.execute(f"SET LOCAL synchronous_commit = {'on' if durable else 'off'}")
                    yield _Marks(self._connection)
            except self._psycopg.Error as error:
                if self._connection is not None and self._connection.broken:
                    self._connection = None
                text = str(error).strip().partition("\n")[0]
                raise StoreError(f"the ledger in PostgreSQL cannot be used: {text}") from None

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _connected(self) -> Any:
        connection = self._psycopg.connect(self._url, autocommit=True, connect_timeout=10)
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (self._schema,))
            found = connection.execute("SELECT to_regclass(%s)", (f"{self._schema}.tasks",)).fetchone()[0]
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {self._schema}")
            connection.execute(f"SET search_path TO {self._schema}")
            for step in read_steps(SCHEMA) if found is None else ():
                connection.execute(step)
        return connection


class _Marks:
    """Takes queries with the marks of SQLite."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, query: str, values: Any = (), /) -> Any:
        return self._connection.execute(query.replace("%", "%%").replace("?", "%s"), values or None)

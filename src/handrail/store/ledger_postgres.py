"""A ledger in PostgreSQL, each batch in a schema of its own: for a driver whose machine may be lost."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from ..errors import StoreError
from .database import read_steps
from .ledger import SCHEMA, Connection, SqlLedger


class PostgresLedger(SqlLedger):
    """`url` as libpq takes it. Raises StoreError; a connection that broke is made again by the next use."""

    def __init__(self, url: str, run: str) -> None:
        try:
            self._psycopg: Any = import_module("psycopg")  # an optional dependency
        except ImportError:
            raise StoreError("a ledger in PostgreSQL needs the extra: pip install 'handrail[postgres]'") from None
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

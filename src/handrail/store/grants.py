"""What was allowed for longer than once: to whom, until when, how many times."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..base.runtime_id import has_exited, runtime_id
from .database import Database

# A scope that ends with its process; others are names that a later process can use again.
_PROCESS_SCOPE = "process:"


class StoredGrant(NamedTuple):
    id: int
    scope: str
    key: str
    by: str
    created: float
    expires: float | None
    uses_left: int | None


class GrantStore:
    """Grants by scope (a task, a session, a process) and key (a rule and its reach)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self, scope: str, keys: Iterable[str], *, by: str, seconds: float | None = None, uses: int | None = None
    ) -> None:
        now = time.time()
        expires = None if seconds is None else now + seconds
        with self._database.transaction() as connection:
            for key in keys:
                connection.execute("DELETE FROM grants WHERE scope = ? AND key = ?", (scope, key))
                connection.execute(
                    "INSERT INTO grants (scope, key, by, created, expires, uses_left, owner) VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (scope, key, by, now, expires, uses, runtime_id()),
                )

    def of(self, scopes: Sequence[str]) -> list[StoredGrant]:
        """The grants that hold now for one of these."""
        marks = ", ".join("?" * len(scopes))
        query = (
            f"SELECT * FROM grants WHERE scope IN ({marks}) AND (expires IS NULL OR expires > ?) "
            "AND (uses_left IS NULL OR uses_left > 0) ORDER BY id"
        )
        return [_grant(row) for row in self._database.rows(query, (*scopes, time.time()))]

    def use(self, grants: Iterable[StoredGrant]) -> bool:
        """Count one use of each. False, and nothing is counted, when one of them does not hold any more."""
        counted = [grant.id for grant in grants]
        with self._database.transaction() as connection:
            for number in counted:
                held = connection.execute(
                    "SELECT 1 FROM grants WHERE id = ? AND (uses_left IS NULL OR uses_left > 0) "
                    "AND (expires IS NULL OR expires > ?)",
                    (number, time.time()),
                ).fetchone()
                if held is None:
                    return False
            connection.executemany(
                "UPDATE grants SET uses_left = uses_left - 1 WHERE id = ? AND uses_left IS NOT NULL",
                [(number,) for number in counted],
            )
        return True

    def all(self) -> list[StoredGrant]:
        """Every grant that holds. What ran out is taken away on the way."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM grants WHERE expires <= ? OR uses_left <= 0", (time.time(),))
            rows = connection.execute("SELECT * FROM grants ORDER BY id").fetchall()
            gone = [row["id"] for row in rows if row["scope"].startswith(_PROCESS_SCOPE) and has_exited(row["owner"])]
            connection.executemany("DELETE FROM grants WHERE id = ?", [(number,) for number in gone])
        return [_grant(row) for row in rows if row["id"] not in gone]

    def forget(self, scopes: Sequence[str]) -> None:
        """Take back all grants of these."""
        with self._database.transaction() as connection:
            connection.executemany("DELETE FROM grants WHERE scope = ?", [(scope,) for scope in scopes])

    def revoke(self, number: int) -> StoredGrant | None:
        """Take a grant back. None when there is none of that number."""
        with self._database.transaction() as connection:
            row = connection.execute("SELECT * FROM grants WHERE id = ?", (number,)).fetchone()
            connection.execute("DELETE FROM grants WHERE id = ?", (number,))
        return None if row is None else _grant(row)


def _grant(row: object) -> StoredGrant:
    return StoredGrant(*(row[name] for name in StoredGrant._fields))  # type: ignore[index]

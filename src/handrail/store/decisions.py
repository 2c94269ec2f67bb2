"""Who decided what, by which rule, and how long it took: the record that `handrail approvals log` shows."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from .database import Database

_MAX_ROWS = 20_000
_ROWS_BETWEEN_CUTS = 100


class DecisionRecord(NamedTuple):
    """One decision. `by` is floor, deny list, allowlist, grant, off, yolo, isolated, policy, smart, or a person's surface."""

    tool: str
    kind: str
    text: str
    cwd: str
    environment: str
    session: str | None
    task: str | None
    keys: tuple[str, ...]
    decision: str
    by: str
    why: str = ""
    seconds: float = 0.0
    request: str | None = None
    at: float = 0.0
    id: int = 0


class DecisionLog:
    """Grows to a number of rows; the oldest go first."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, record: DecisionRecord) -> None:
        row = record._asdict() | {"keys": json.dumps(record.keys), "at": record.at or time.time()}
        del row["id"]
        names = ", ".join(row)
        with self._database.transaction() as connection:
            number = connection.execute(
                f"INSERT INTO decisions ({names}) VALUES ({', '.join('?' * len(row))})", tuple(row.values())
            ).lastrowid
            if number is not None and number % _ROWS_BETWEEN_CUTS == 0:
                connection.execute("DELETE FROM decisions WHERE id <= ?", (number - _MAX_ROWS,))

    def latest(self, count: int) -> Sequence[DecisionRecord]:
        """The newest, oldest of them first."""
        rows = self._database.rows("SELECT * FROM decisions ORDER BY id DESC LIMIT ?", (count,))
        return [_record(row) for row in reversed(rows)]

    def of_session(self, session: str) -> Sequence[DecisionRecord]:
        rows = self._database.rows("SELECT * FROM decisions WHERE session = ? ORDER BY id", (session,))
        return [_record(row) for row in rows]


def _record(row: Any) -> DecisionRecord:
    fields = {name: row[name] for name in DecisionRecord._fields}
    return DecisionRecord(**fields | {"keys": tuple(json.loads(row["keys"]))})

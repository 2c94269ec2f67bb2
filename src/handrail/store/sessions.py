"""Conversations on disk: every message, call and cost, so that they can be gone on with, branched, searched and exported."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import SessionNotFound
from ..types import JsonDict
from .database import Database

_STEPS = (
    """
    CREATE TABLE sessions (
      id TEXT PRIMARY KEY, created REAL NOT NULL, updated REAL NOT NULL, title TEXT NOT NULL, platform TEXT NOT NULL,
      model TEXT NOT NULL, cwd TEXT NOT NULL, parent TEXT, branched_at INTEGER, kind TEXT NOT NULL,
      input_tokens INTEGER NOT NULL DEFAULT 0, output_tokens INTEGER NOT NULL DEFAULT 0, cost REAL
    );
    CREATE INDEX sessions_by_time ON sessions (kind, updated);
    CREATE TABLE messages (
      id INTEGER PRIMARY KEY, session TEXT NOT NULL, at REAL NOT NULL, role TEXT NOT NULL, body TEXT NOT NULL,
      hidden INTEGER NOT NULL DEFAULT 0
    );
    CREATE INDEX messages_by_session ON messages (session, id);
    CREATE TABLE calls (
      id INTEGER PRIMARY KEY, session TEXT NOT NULL, call_id TEXT NOT NULL, tool TEXT NOT NULL, arguments TEXT NOT NULL,
      at REAL NOT NULL, seconds REAL NOT NULL, error_type TEXT NOT NULL
    );
    CREATE INDEX calls_by_session ON calls (session, id);
    CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='unicode61');
    CREATE VIRTUAL TABLE pieces USING fts5(text, content='', tokenize='trigram')
    """,
)
_MAX_SEARCHED_CHARS = 20_000
MAIN, CHILD = "main", "child"


class SessionInfo(NamedTuple):
    """A conversation without its messages. `parent` is what it was branched from, or whose child it is."""

    id: str
    created: float
    updated: float
    title: str
    platform: str
    model: str
    cwd: str
    parent: str | None
    branched_at: int | None
    kind: str
    input_tokens: int
    output_tokens: int
    cost: float | None


class StoredMessage(NamedTuple):
    id: int
    session: str
    at: float
    message: JsonDict


class StoredCall(NamedTuple):
    tool: str
    call_id: str
    arguments: JsonDict
    at: float
    seconds: float
    error_type: str


class SessionStore:
    """All sessions of a user. `path` None keeps them in memory. Threads and processes may share it."""

    def __init__(self, path: Path | None = None) -> None:
        self._database = Database(path, _STEPS)

    def close(self) -> None:
        self._database.close()

    # Sessions

    def create(
        self, *, platform: str, model: str, cwd: str, title: str = "", parent: str | None = None, kind: str = MAIN
    ) -> SessionInfo:
        now = time.time()
        row = SessionInfo(_new_id(now), now, now, title, platform, model, cwd, parent, None, kind, 0, 0, None)
        self._insert(row)
        return row

    def get(self, session_id: str) -> SessionInfo:
        """By its id, or by the beginning of it. Raises SessionNotFound."""
        begin = session_id.replace("%", "").replace("_", "")
        rows = self._database.rows("SELECT * FROM sessions WHERE id LIKE ? LIMIT 2", (f"{begin}%",)) if begin else []
        if not rows:
            raise SessionNotFound(f"no session {session_id!r}; `handrail sessions` lists them")
        if len(rows) > 1:
            raise SessionNotFound(f"more than one session begins with {session_id!r}; give more of its id")
        return SessionInfo(*rows[0])

    def recent(
        self, *, limit: int = 20, offset: int = 0, kind: str = MAIN, cwd: str | None = None
    ) -> list[SessionInfo]:
        """The sessions that were used last, first; those of one working directory if it is given."""
        where, values = ("AND cwd = ?", [cwd]) if cwd is not None else ("", [])
        query = f"SELECT * FROM sessions WHERE kind = ? {where} ORDER BY updated DESC, id DESC LIMIT ? OFFSET ?"
        return [SessionInfo(*row) for row in self._database.rows(query, (kind, *values, limit, offset))]

    def rename(self, session_id: str, title: str) -> None:
        self._change(session_id, "title = ?", title)

    def set_model(self, session_id: str, model: str) -> None:
        self._change(session_id, "model = ?", model)

    def branch(self, session_id: str, *, after: int | None = None) -> SessionInfo:
        """A new session that begins as this one did, up to a message (None: all of it). The two go their own ways."""
        source = self.get(session_id)
        last = after if after is not None else max((each.id for each in self.messages(source.id)), default=0)
        now = time.time()
        made = source._replace(
            id=_new_id(now), created=now, updated=now, parent=source.id, branched_at=last, kind=MAIN,
            input_tokens=0, output_tokens=0, cost=None,
        )  # fmt: skip
        self._insert(made)
        return made

    def delete(self, session_id: str) -> None:
        """Forget a session. One that was branched from it keeps what they had in common."""
        with self._database.transaction() as connection:
            used = connection.execute("SELECT 1 FROM sessions WHERE parent = ? LIMIT 1", (session_id,)).fetchone()
            if used:
                connection.execute("UPDATE sessions SET kind = 'deleted' WHERE id = ?", (session_id,))
                return
            for number, body in connection.execute("SELECT id, body FROM messages WHERE session = ?", (session_id,)):
                text = searchable(json.loads(body))
                for table in ("words", "pieces") if text else ():
                    # An index without its content has to be told what it is to forget.
                    connection.execute(
                        f"INSERT INTO {table} ({table}, rowid, text) VALUES ('delete', ?, ?)", (number, text)
                    )
            connection.execute("DELETE FROM messages WHERE session = ?", (session_id,))
            connection.execute("DELETE FROM calls WHERE session = ?", (session_id,))
            connection.execute("DELETE FROM sessions WHERE id = ?", (session_id,))

    # Messages

    def append(
        self, session_id: str, messages: Iterable[JsonDict], *, usage: Sequence[Any] = (0, 0, None)
    ) -> list[int]:
        """Add messages, and what they cost. Returns their numbers. All of them are there or none."""
        now, made = time.time(), []
        with self._database.transaction() as connection:
            for message in messages:
                body = json.dumps(message, ensure_ascii=False)
                cursor = connection.execute(
                    "INSERT INTO messages (session, at, role, body) VALUES (?, ?, ?, ?)",
                    (session_id, now, str(message.get("role", "")), body),
                )
                made.append(int(cursor.lastrowid or 0))
                text = searchable(message)
                if text:
                    for table in ("words", "pieces"):
                        connection.execute(f"INSERT INTO {table} (rowid, text) VALUES (?, ?)", (made[-1], text))
            tokens_in, tokens_out, cost = usage
            connection.execute(
                "UPDATE sessions SET updated = ?, input_tokens = input_tokens + ?, output_tokens = output_tokens + ?, "
                "cost = CASE WHEN ? IS NULL THEN cost ELSE coalesce(cost, 0) + ? END WHERE id = ?",
                (now, tokens_in, tokens_out, cost, cost, session_id),
            )
        return made

    def messages(self, session_id: str, *, hidden: bool = False) -> list[StoredMessage]:
        """The conversation in its order, with what it shares with the session that it was branched from."""
        info = self.get(session_id)
        found: list[StoredMessage] = []
        if info.branched_at is not None and info.parent is not None:
            found = [each for each in self.messages(info.parent, hidden=hidden) if each.id <= info.branched_at]
        rows = self._database.rows(
            "SELECT id, session, at, body FROM messages WHERE session = ? AND hidden <= ? ORDER BY id",
            (info.id, int(hidden)),
        )
        return [*found, *(StoredMessage(row["id"], row["session"], row["at"], json.loads(row["body"])) for row in rows)]

    def hide(self, session_id: str, ids: Iterable[int]) -> None:
        """Take messages out of the conversation: undone, or put into a summary. They can still be searched."""
        with self._database.transaction() as connection:
            connection.executemany(
                "UPDATE messages SET hidden = 1 WHERE id = ? AND session = ?", [(each, session_id) for each in ids]
            )

    # Calls

    def add_call(self, session_id: str, call: StoredCall) -> None:
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT INTO calls (session, call_id, tool, arguments, at, seconds, error_type) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (session_id, call.call_id, call.tool, json.dumps(call.arguments, ensure_ascii=False), *call[3:]),
            )

    def calls(self, session_id: str) -> list[StoredCall]:
        rows = self._database.rows(
            "SELECT tool, call_id, arguments, at, seconds, error_type FROM calls WHERE session = ? ORDER BY id",
            (session_id,),
        )
        return [StoredCall(row[0], row[1], json.loads(row[2]), *row[3:]) for row in rows]

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """For those who look at the whole store, such as the search."""
        return self._database.rows(query, values)

    def _insert(self, row: SessionInfo) -> None:
        with self._database.transaction() as connection:
            connection.execute(f"INSERT INTO sessions VALUES ({', '.join('?' * len(row))})", row)

    def _change(self, session_id: str, what: str, value: object) -> None:
        with self._database.transaction() as connection:
            connection.execute(
                f"UPDATE sessions SET {what}, updated = ? WHERE id = ?", (value, time.time(), session_id)
            )


def searchable(message: JsonDict) -> str:
    """What a person would look for in a message: its text, and what was called with which arguments."""
    content = message.get("content")
    parts = [content] if isinstance(content, str) else []
    if isinstance(content, list):
        parts += [str(part["text"]) for part in content if isinstance(part, dict) and part.get("type") == "text"]
    for call in message.get("tool_calls") or ():
        function = call.get("function", {})
        parts.append(f"{function.get('name', '')} {function.get('arguments', '')}")
    return "\n".join(parts)[:_MAX_SEARCHED_CHARS]


def _new_id(now: float) -> str:
    return f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}-{secrets.token_hex(3)}"

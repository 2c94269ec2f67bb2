"""Conversations on disk: every message, call and cost, so that they can be gone on with, branched, searched and exported."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import SessionNotFound
from ..types import JsonDict
from .database import Database, reading_entry

if TYPE_CHECKING:
    import sqlite3

_NO_MESSAGE = 2**62  # later than all
MAIN, CHILD = "main", "child"
# The search index over the messages is made some messages at a time, since one at a time costs ten times as much. It always
# covers all messages up to one, whose number is kept in the same file: what comes after it waits, and a crash loses nothing.
# About 10 ms of work: little enough for a writer to do it on the way.
MAX_WAITING_CHARS = 1 << 15
_MESSAGES_AT_ONCE = 1_000
_TABLES = ("words", "pieces")
# Scripts that put no spaces between words: Chinese, Japanese, and Korean, whose words carry their endings.
_UNSPACED = re.compile(r"([\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff])")
_MAX_SEARCHED_CHARS = 20_000
_WAITING = "FROM messages WHERE id > (SELECT last FROM indexed)"


def index_waiting(connection: sqlite3.Connection) -> bool:
    """Put into the index some of what waits, in its order. Whether more waits. Within a transaction."""
    found = connection.execute(f"SELECT id, body, copy {_WAITING} ORDER BY id LIMIT {_MESSAGES_AT_ONCE}").fetchall()
    texts = [(number, text) for number, body, copy in found if not copy and (text := searchable(json.loads(body)))]
    for table in _TABLES:
        rows = [(number, _as_indexed(table, text)) for number, text in texts]
        connection.executemany(f"INSERT INTO {table} (rowid, text) VALUES (?, ?)", rows)
    if found:
        connection.execute("UPDATE indexed SET last = ?", (found[-1]["id"],))
    return len(found) == _MESSAGES_AT_ONCE


def in_words(text: str) -> str:
    """The text with spaces around each character that is a word, or a part of one, without them: a word of two such
    characters in the middle of a sentence is found as two words beside each other."""
    return text if text.isascii() else _UNSPACED.sub(r" \1 ", text)


def _as_indexed(table: str, text: str) -> str:
    return in_words(text) if table == "words" else text


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


class SessionInfo(NamedTuple):
    """A conversation without its messages. `parent` is the session it was branched from, or whose child it is."""

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
    """Of its `seconds` it `waited` so many for an answer."""

    tool: str
    call_id: str
    arguments: JsonDict
    at: float
    seconds: float
    error_type: str
    waited: float = 0.0


class StoredModelCall(NamedTuple):
    """One request to a model. `error` is empty when it answered."""

    at: float
    seconds: float
    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None
    error: str = ""


class SessionStore:
    """All sessions of a user. `path` None keeps them in memory. Threads and processes may share it."""

    def __init__(self, path: Path | None = None) -> None:
        self._database = Database(path, Path(__file__).with_suffix(".sql"))
        self._waiting_chars: int | None = None  # for the index; None is not known yet

    def close(self) -> None:
        self._database.close()

    def create(
        self, *, platform: str, model: str, cwd: str, title: str = "", parent: str | None = None, kind: str = MAIN
    ) -> SessionInfo:
        now = time.time()
        row = SessionInfo(_new_id(now), now, now, title, platform, model, cwd, parent, None, kind, 0, 0, None)
        return self._inserted(row)

    def begin(self, session_id: str, *, platform: str, model: str, cwd: str) -> SessionInfo:
        """The session of exactly that id, made if there is none. Raises SessionNotFound for one that was deleted."""
        now = time.time()
        row = SessionInfo(session_id, now, now, "", platform, model, cwd, None, None, MAIN, 0, 0, None)
        with self._database.transaction() as connection:
            connection.execute(f"INSERT OR IGNORE INTO sessions VALUES ({', '.join('?' * len(row))})", row)
            found = SessionInfo(*connection.execute("SELECT * FROM sessions WHERE id = ?", (session_id,)).fetchone())
        if found.kind == "deleted":
            raise SessionNotFound(f"session {session_id!r} was deleted; use another id")
        return found

    def get(self, session_id: str) -> SessionInfo:
        """By its id, or a unique prefix of it. Raises SessionNotFound."""
        begins = "SELECT * FROM sessions WHERE id >= ? AND id < ? AND kind != 'deleted' ORDER BY id LIMIT 2"
        rows = self._database.rows(begins, (session_id, f"{session_id}\U0010ffff")) if session_id else []
        if not rows:
            raise SessionNotFound(f"no session {session_id!r}; `handrail sessions list` shows them")
        if len(rows) > 1 and rows[0]["id"] != session_id:
            raise SessionNotFound(f"more than one session starts with {session_id!r}; give more of its id")
        return SessionInfo(*rows[0])

    def recent(
        self, *, limit: int = 20, offset: int = 0, kind: str = MAIN, cwd: str | None = None
    ) -> list[SessionInfo]:
        """The most recently used sessions first; only those of `cwd` if it is given."""
        where, values = ("AND cwd = ?", [cwd]) if cwd is not None else ("", [])
        query = f"SELECT * FROM sessions WHERE kind = ? {where} ORDER BY updated DESC, id DESC LIMIT ? OFFSET ?"
        return [SessionInfo(*row) for row in self._database.rows(query, (kind, *values, limit, offset))]

    def rename(self, session_id: str, title: str) -> None:
        query = "UPDATE sessions SET title = ?, updated = ? WHERE id = ?"
        self._database.change(query, (title, time.time(), session_id))

    def set_model(self, session_id: str, model: str) -> None:
        query = "UPDATE sessions SET model = ?, updated = ? WHERE id = ?"
        self._database.change(query, (model, time.time(), session_id))

    def branch(self, session_id: str, *, after: int | None = None) -> SessionInfo:
        """A new session that starts with this one's messages, up to `after` (None: all of them)."""
        source = self.get(session_id)
        last = after if after is not None else max((each.id for each in self.messages(source.id)), default=0)
        now = time.time()
        made = source._replace(
            id=_new_id(now), created=now, updated=now, parent=source.id, branched_at=last, kind=MAIN,
            input_tokens=0, output_tokens=0, cost=None,
        )  # fmt: skip
        return self._inserted(made)

    def delete(self, session_id: str) -> None:
        """Delete a session and those of its child agents. A branch of it keeps the messages they share."""
        with self._database.transaction() as connection:
            _delete(connection, session_id)

    def append(
        self,
        session_id: str,
        messages: Iterable[JsonDict],
        *,
        asked: StoredModelCall | None = None,
        calls: Iterable[StoredCall] = (),
        instead_of: Iterable[int] = (),
        copies: int = 0,
    ) -> list[int]:
        """Add messages, with the records of the model call or the tool calls that made them, in one transaction. Returns the
        ids of the messages.

        `instead_of` hides other messages in the same transaction; the last `copies` of the new ones repeat some of those.
        """
        now, made, given, chars = time.time(), [], list(messages), 0
        with self._database.transaction() as connection:
            replaced = list(instead_of)
            _hide(connection, session_id, replaced)
            # A message that is repeated is as old as it was: what was done since then can be taken back with it.
            at, repeated = "SELECT at FROM messages WHERE id = ?", replaced[len(replaced) - copies :] if copies else []
            old = [float(connection.execute(at, (each,)).fetchone()[0]) for each in repeated]
            times = [now] * (len(given) - len(old)) + old
            for place, message in enumerate(given):
                body = json.dumps(message, ensure_ascii=False)
                cursor = connection.execute(
                    "INSERT INTO messages (session, at, role, body, copy) VALUES (?, ?, ?, ?, ?)",
                    (session_id, times[place], str(message.get("role", "")), body, place >= len(given) - copies),
                )
                made.append(int(cursor.lastrowid or 0))
                chars += len(body)
            if asked is not None:
                query = f"INSERT INTO model_calls (session, {', '.join(asked._fields)}) VALUES (?{', ?' * len(asked)})"
                connection.execute(query, (session_id, *asked))
            rows = [(session_id, *c[:2], json.dumps(c.arguments, ensure_ascii=False), *c[3:]) for c in calls]
            query = f"INSERT INTO calls (session, {', '.join(StoredCall._fields)}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
            connection.executemany(query, rows)
            used = asked or StoredModelCall(now, 0.0, "")
            connection.execute(
                "UPDATE sessions SET updated = ?, input_tokens = input_tokens + ?, output_tokens = output_tokens + ?, "
                "cost = CASE WHEN ? IS NULL THEN cost ELSE coalesce(cost, 0) + ? END WHERE id = ?",
                (now, used.input_tokens, used.output_tokens, used.cost, used.cost, session_id),
            )
            if self._waiting_chars is None:  # these are in the store already
                query = f"SELECT coalesce(sum(length(body)), 0) {_WAITING}"
                waiting = int(connection.execute(query).fetchone()[0])
            else:
                waiting = self._waiting_chars + chars
            self._waiting_chars = 0 if waiting > MAX_WAITING_CHARS and not index_waiting(connection) else waiting
        return made

    def index(self) -> None:
        """Index all messages for the search."""
        more = bool(self._database.rows("SELECT 1 FROM messages WHERE id > (SELECT last FROM indexed) LIMIT 1"))
        while more:  # a transaction for some at a time, so that others can write meanwhile
            with self._database.transaction() as connection:
                more = index_waiting(connection)

    def messages(self, session_id: str, *, hidden: bool = False) -> list[StoredMessage]:
        """The conversation in order, with what it shares with the session it was branched from. `hidden`: every message it ever
        had, once each, also those that were undone or summarised."""
        return self._messages(self._info(session_id), None, hidden=hidden)

    def _messages(self, info: SessionInfo, until: int | None, *, hidden: bool) -> list[StoredMessage]:
        """`until`: as the conversation was when that message was its last, with messages that were hidden later."""
        found: list[StoredMessage] = []
        if info.branched_at is not None and info.parent is not None:
            common = info.branched_at if until is None else min(until, info.branched_at)
            found = self._messages(self._info(info.parent), common, hidden=hidden)
        last = _NO_MESSAGE if until is None else until
        is_shown = "CASE WHEN ? THEN copy = 0 ELSE hidden = 0 OR hidden >= ? END"
        query = f"SELECT id, at, body FROM messages WHERE session = ? AND id <= ? AND {is_shown} ORDER BY id"
        rows = self._database.rows(query, (info.id, last, hidden, last))
        with reading_entry(f"a message of the session {info.id!r}"):
            own = [StoredMessage(row["id"], info.id, row["at"], json.loads(row["body"])) for row in rows]
        return [*found, *own]

    def hide(self, session_id: str, ids: Iterable[int]) -> None:
        """Hide messages from the conversation: undone or summarised. They can still be searched."""
        with self._database.transaction() as connection:
            _hide(connection, session_id, ids)

    def calls(self, session_id: str) -> list[StoredCall]:
        query = f"SELECT {', '.join(StoredCall._fields)} FROM calls WHERE session = ? ORDER BY id"
        rows = self._database.rows(query, (session_id,))
        return [StoredCall(row[0], row[1], json.loads(row[2]), *row[3:]) for row in rows]

    def model_calls(self, session_id: str) -> list[StoredModelCall]:
        query = f"SELECT {', '.join(StoredModelCall._fields)} FROM model_calls WHERE session = ? ORDER BY id"
        return [StoredModelCall(*row) for row in self._database.rows(query, (session_id,))]

    def children(self, session_id: str) -> list[SessionInfo]:
        """The sessions of the child agents that this one had, in their order."""
        query = "SELECT * FROM sessions WHERE parent = ? AND kind = ? ORDER BY created, id"
        return [SessionInfo(*row) for row in self._database.rows(query, (session_id, CHILD))]

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Query the whole store, as the search does."""
        return self._database.rows(query, values)

    def _info(self, session_id: str) -> SessionInfo:
        """By its full id, also one that is kept only for its branches."""
        rows = self._database.rows("SELECT * FROM sessions WHERE id = ?", (session_id,))
        return SessionInfo(*rows[0]) if rows else self.get(session_id)

    def _inserted(self, row: SessionInfo) -> SessionInfo:
        """Inserts it, under another id if its own is taken: of a thousand that start in one second, two may collide."""
        insert = f"INSERT OR IGNORE INTO sessions VALUES ({', '.join('?' * len(row))})"
        while True:
            with self._database.transaction() as connection:
                if connection.execute(insert, row).rowcount:
                    return row
            row = row._replace(id=_new_id(row.created))


def _hide(connection: sqlite3.Connection, session_id: str, ids: Iterable[int]) -> None:
    """Stores the id of the last message so far, so that an earlier branch still knows what it started with."""
    if values := [(each, session_id) for each in ids]:
        hidden = "hidden = (SELECT max(id) FROM messages)"
        connection.executemany(f"UPDATE messages SET {hidden} WHERE id = ? AND session = ? AND hidden = 0", values)


def _delete(connection: sqlite3.Connection, session_id: str) -> None:
    children = "SELECT id FROM sessions WHERE parent = ? AND kind = ?"
    for (child,) in connection.execute(children, (session_id, CHILD)).fetchall():
        _delete(connection, child)
    used = "SELECT 1 FROM sessions WHERE parent = ? AND branched_at IS NOT NULL LIMIT 1"
    if connection.execute(used, (session_id,)).fetchone():
        connection.execute("UPDATE sessions SET kind = 'deleted' WHERE id = ?", (session_id,))
        return
    indexed = "SELECT id, body FROM messages WHERE session = ? AND copy = 0 AND id <= (SELECT last FROM indexed)"
    for number, body in connection.execute(indexed, (session_id,)).fetchall():
        text = searchable(json.loads(body))
        for table in _TABLES if text else ():
            # An index without its content has to be told what it is to forget.
            forgotten = (number, _as_indexed(table, text))
            connection.execute(f"INSERT INTO {table} ({table}, rowid, text) VALUES ('delete', ?, ?)", forgotten)
    for table in ("messages", "calls", "model_calls"):
        connection.execute(f"DELETE FROM {table} WHERE session = ?", (session_id,))
    # The numbers of the last messages are given again.
    connection.execute("UPDATE indexed SET last = min(last, coalesce((SELECT max(id) FROM messages), 0))")
    kept = "SELECT p.id FROM sessions p JOIN sessions s ON p.id = s.parent WHERE s.id = ? AND p.kind = 'deleted'"
    parents = connection.execute(kept, (session_id,)).fetchall()
    connection.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
    for (parent,) in parents:  # it was kept only for what is deleted now
        _delete(connection, parent)


def _new_id(now: float) -> str:
    return f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}-{secrets.token_hex(3)}"

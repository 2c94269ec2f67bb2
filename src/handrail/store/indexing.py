"""The search index over the messages: made some messages at a time, since one at a time costs ten times as much.

It always covers all messages up to one, whose number is kept in the same file: what comes after it waits, and a crash loses
nothing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..types import JsonDict

if TYPE_CHECKING:
    import sqlite3

# About 10 ms of work: little enough for a writer to do it on the way.
MOST_WAITING_CHARS = 1 << 15
_TABLES = ("words", "pieces")
_MAX_SEARCHED_CHARS = 20_000
_WAITING = "FROM messages WHERE id > (SELECT last FROM indexed)"


def waiting_chars(connection: sqlite3.Connection) -> int:
    """How much text is not in the index yet."""
    return int(connection.execute(f"SELECT coalesce(sum(length(body)), 0) {_WAITING}").fetchone()[0])


def index_waiting(connection: sqlite3.Connection) -> None:
    """Put into the index what waits. Within a transaction."""
    found = connection.execute(f"SELECT id, body {_WAITING} AND copy = 0").fetchall()
    texts = [(number, text) for number, body in found if (text := searchable(json.loads(body)))]
    for table in _TABLES:
        connection.executemany(f"INSERT INTO {table} (rowid, text) VALUES (?, ?)", texts)
    connection.execute("UPDATE indexed SET last = coalesce((SELECT max(id) FROM messages), 0)")


def forget_messages(connection: sqlite3.Connection, session_id: str) -> None:
    """Delete a session's messages, and what the index knows of them. Within a transaction."""
    indexed = "SELECT id, body FROM messages WHERE session = ? AND copy = 0 AND id <= (SELECT last FROM indexed)"
    for number, body in connection.execute(indexed, (session_id,)).fetchall():
        text = searchable(json.loads(body))
        for table in _TABLES if text else ():
            # An index without its content has to be told what it is to forget.
            connection.execute(f"INSERT INTO {table} ({table}, rowid, text) VALUES ('delete', ?, ?)", (number, text))
    connection.execute("DELETE FROM messages WHERE session = ?", (session_id,))
    # The numbers of the last messages are given again.
    connection.execute("UPDATE indexed SET last = min(last, coalesce((SELECT max(id) FROM messages), 0))")


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

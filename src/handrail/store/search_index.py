"""The search index over the messages: made some messages at a time, since one at a time costs ten times as much.

It always covers all messages up to one, whose number is kept in the same file: what comes after it waits, and a crash loses
nothing.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from ..types import JsonDict

if TYPE_CHECKING:
    import sqlite3

# About 10 ms of work: little enough for a writer to do it on the way.
MAX_WAITING_CHARS = 1 << 15
_MESSAGES_AT_ONCE = 1_000
_TABLES = ("words", "pieces")
# Scripts that put no spaces between words: Chinese, Japanese, and Korean, whose words carry their endings.
_UNSPACED = re.compile(r"([\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff])")
_MAX_SEARCHED_CHARS = 20_000
_WAITING = "FROM messages WHERE id > (SELECT last FROM indexed)"


def waiting_chars(connection: sqlite3.Connection) -> int:
    """How much text is not in the index yet."""
    return int(connection.execute(f"SELECT coalesce(sum(length(body)), 0) {_WAITING}").fetchone()[0])


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


def forget_messages(connection: sqlite3.Connection, session_id: str) -> None:
    """Delete a session's messages, and what the index knows of them. Within a transaction."""
    indexed = "SELECT id, body FROM messages WHERE session = ? AND copy = 0 AND id <= (SELECT last FROM indexed)"
    for number, body in connection.execute(indexed, (session_id,)).fetchall():
        text = searchable(json.loads(body))
        for table in _TABLES if text else ():
            # An index without its content has to be told what it is to forget.
            forgotten = (number, _as_indexed(table, text))
            connection.execute(f"INSERT INTO {table} ({table}, rowid, text) VALUES ('delete', ?, ?)", forgotten)
    connection.execute("DELETE FROM messages WHERE session = ?", (session_id,))
    # The numbers of the last messages are given again.
    connection.execute("UPDATE indexed SET last = min(last, coalesce((SELECT max(id) FROM messages), 0))")


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

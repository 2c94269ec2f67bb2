"""Find messages of all sessions by words, or by any piece of text: code, paths, languages without spaces."""

import contextlib
import json
import re
from typing import NamedTuple

from ..errors import StoreError
from .sessions import SessionStore, StoredMessage, in_words, searchable

# A search ranks the newest of so many hits: ranking a million of a common word takes longer than anyone waits.
_MAX_RANKED = 2_000
_CONTEXT_CHARS = 160


class Hit(NamedTuple):
    """A message that fits, with the part of it that does."""

    session: str
    title: str
    message_id: int
    at: float
    role: str
    excerpt: str


def search(store: SessionStore, query: str, *, limit: int = 10) -> list[Hit]:
    """The best hits first. Words in any order, each also as the beginning of one; "quoted" text as it stands. Where there are
    none, or too few of a single word, those follow that have it within a word."""
    phrases, words = _parsed(query)
    if not phrases and not words:
        return []
    with contextlib.suppress(StoreError):  # on a full disk all but the newest is found
        store.index()
    terms = [*(_quoted(in_words(each)) for each in phrases), *(f"{_quoted(in_words(word))}*" for word in words)]
    found = _ids(store, "words", " AND ".join(terms))
    whole = [*phrases, *words]
    pieces = [each for each in whole if len(each) >= 3]
    if not found or (len(found) < limit and len(whole) == 1):
        found += [each for each in _ids(store, "pieces", " AND ".join(map(_quoted, pieces))) if each not in found]
    return _hits(store, found, whole, limit)


def window(store: SessionStore, message_id: int, *, before: int = 3, after: int = 3) -> list[StoredMessage]:
    """The messages around one, of the same session."""
    rows = store.rows("SELECT session FROM messages WHERE id = ?", (message_id,))
    if not rows:
        return []
    session = rows[0]["session"]
    query = "SELECT id, at, body FROM messages WHERE session = ? AND copy = 0 AND id {} ? ORDER BY id {} LIMIT ?"
    earlier = store.rows(query.format("<=", "DESC"), (session, message_id, before + 1))
    later = store.rows(query.format(">", "ASC"), (session, message_id, after))
    found = [*reversed(earlier), *later]
    return [StoredMessage(row["id"], session, row["at"], json.loads(row["body"])) for row in found]


def _parsed(query: str) -> tuple[list[str], list[str]]:
    query = query.replace("\0", " ")  # SQLite would take it for the end
    phrases = [each.strip() for each in re.findall(r'"([^"]+)"', query) if each.strip()]
    words = [each for each in re.sub(r'"[^"]*"?', " ", query).split() if any(char.isalnum() for char in each)]
    return phrases, words


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _ids(store: SessionStore, table: str, match: str) -> list[int]:
    """The newest hits, ordered by rank. Nothing fits an empty question."""
    if not match:
        return []
    newest_first = f"ORDER BY rowid DESC LIMIT {_MAX_RANKED + 1}"
    rows = store.rows(f"SELECT rowid FROM {table} WHERE {table} MATCH ? {newest_first}", (match,))
    newest = [row["rowid"] for row in rows]
    if len(newest) > _MAX_RANKED:
        return newest[:_MAX_RANKED]  # a word that is everywhere ranks nothing: the newest come first
    ranked = store.rows(f"SELECT rowid FROM {table} WHERE {table} MATCH ? ORDER BY rank", (match,))
    return [row["rowid"] for row in ranked]


def _hits(store: SessionStore, ids: list[int], words: list[str], limit: int) -> list[Hit]:
    query = (
        "SELECT m.session, m.at, m.role, m.body, s.title FROM messages m JOIN sessions s ON s.id = m.session "
        "WHERE m.id = ? AND s.kind != 'deleted'"
    )
    hits: list[Hit] = []
    for each in ids:  # one by one: of up to thousands only the first few are shown
        for row in store.rows(query, (each,)):
            excerpt = _excerpt(searchable(json.loads(row["body"])), words)
            hits.append(Hit(row["session"], row["title"], each, row["at"], row["role"], excerpt))
        if len(hits) >= limit:
            break
    return hits


def _excerpt(text: str, words: list[str]) -> str:
    low = text.lower()
    places = [place for word in words if (place := low.find(word.lower())) >= 0]
    begin = max(0, min(places, default=0) - _CONTEXT_CHARS // 2)
    piece = text[begin : begin + 2 * _CONTEXT_CHARS]
    return f"{'…' if begin else ''}{piece}{'…' if begin + len(piece) < len(text) else ''}"

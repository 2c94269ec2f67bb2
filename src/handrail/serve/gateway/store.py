"""What the chats keep over a restart: paired users, the session of each chat, and posted questions."""

import hashlib
import secrets
import time
from pathlib import Path
from typing import NamedTuple

from ...base.own_process import refuse_agents
from ...store.database import Database

STORE_NAME = "gateway.db"
CODE_SECONDS = 600
# For so long after a question has ended, somebody may still believe that it is open.
RECENT_SECONDS = 120.0
# Without letters that look alike.
_ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
_CODE_CHARS = 10


class Where(NamedTuple):
    """A chat: the name of its account, and its id there."""

    adapter: str
    chat: str


class Post(NamedTuple):
    """A question that was posted into a chat."""

    request: str
    where: Where
    message: str


class Person(NamedTuple):
    adapter: str
    person: str
    paired: float


class GatewayStore:
    """`path` None: in memory."""

    def __init__(self, path: Path | None = None) -> None:
        self._database = Database(path, Path(__file__).with_suffix(".sql"))

    def close(self) -> None:
        self._database.close()

    def new_code(self) -> str:
        """A code that pairs one user, once, within CODE_SECONDS. Raises Denied in a process that an agent started."""
        refuse_agents("pair people")
        code, now = "".join(secrets.choice(_ALPHABET) for _ in range(_CODE_CHARS)), time.time()
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM codes WHERE expires <= ?", (now,))
            connection.execute("INSERT INTO codes VALUES (?, ?)", (_digest(code), now + CODE_SECONDS))
        return code

    def pair(self, adapter: str, person: str, code: str) -> bool:
        """Whether the code was valid."""
        now = time.time()
        with self._database.transaction() as connection:
            query = "DELETE FROM codes WHERE digest = ? AND expires > ?"
            used = connection.execute(query, (_digest(code), now)).rowcount
            if used:
                connection.execute("INSERT OR REPLACE INTO people VALUES (?, ?, ?)", (adapter, person, now))
        return bool(used)

    def is_paired(self, adapter: str, person: str) -> bool:
        return bool(self._database.rows("SELECT 1 FROM people WHERE adapter = ? AND person = ?", (adapter, person)))

    def people(self) -> list[Person]:
        rows = self._database.rows("SELECT adapter, person, paired FROM people ORDER BY adapter, person")
        return [Person(*row) for row in rows]

    def unpair(self, adapter: str, person: str) -> bool:
        refuse_agents("remove people")
        return bool(self._database.change("DELETE FROM people WHERE adapter = ? AND person = ?", (adapter, person)))

    def session_of(self, where: Where) -> str | None:
        rows = self._database.rows("SELECT session FROM chats WHERE adapter = ? AND chat = ?", where)
        return rows[0]["session"] if rows else None

    def set_session(self, where: Where, session: str | None) -> None:
        query = "INSERT INTO chats VALUES (?, ?, ?, '') ON CONFLICT DO UPDATE SET session = excluded.session"
        self._database.change(query, (*where, session))

    def chat_of(self, session: str) -> Where | None:
        rows = self._database.rows("SELECT adapter, chat FROM chats WHERE session = ?", (session,))
        return Where(*rows[0]) if rows else None

    def set_unfinished(self, where: Where, text: str) -> None:
        """The text of the agent's current turn; empty when it is done."""
        query = "INSERT INTO chats VALUES (?, ?, NULL, ?) ON CONFLICT DO UPDATE SET unfinished = excluded.unfinished"
        self._database.change(query, (*where, text))

    def unfinished(self, adapter: str) -> list[tuple[str, str]]:
        """Chats whose agent was interrupted, with the text of its turn."""
        query = "SELECT chat, unfinished FROM chats WHERE adapter = ? AND unfinished != ''"
        return [(row["chat"], row["unfinished"]) for row in self._database.rows(query, (adapter,))]

    def add_post(self, post: Post) -> None:
        row = (post.request, *post.where, post.message, time.time())
        self._database.change("INSERT OR REPLACE INTO posts VALUES (?, ?, ?, ?, 0, ?, 0)", row)

    def open_posts(self, adapter: str) -> list[Post]:
        rows = self._database.rows("SELECT * FROM posts WHERE is_over = 0 AND adapter = ?", (adapter,))
        return [Post(row["request"], Where(row["adapter"], row["chat"]), row["message"]) for row in rows]

    def request_at(self, where: Where, message: str) -> str | None:
        """The id of the question in a message."""
        query = "SELECT request FROM posts WHERE adapter = ? AND chat = ? AND message = ?"
        rows = self._database.rows(query, (*where, message))
        return rows[0]["request"] if rows else None

    def posted(self, where: Where) -> dict[str, float]:
        """When each question was posted into this chat, for those that are open or ended a short while ago."""
        query = "SELECT request, posted FROM posts WHERE adapter = ? AND chat = ? AND (is_over = 0 OR ended > ?)"
        rows = self._database.rows(query, (*where, time.time() - RECENT_SECONDS))
        return {row["request"]: row["posted"] for row in rows}

    def end_post(self, post: Post) -> None:
        query = "UPDATE posts SET is_over = 1, ended = ? WHERE request = ? AND adapter = ? AND chat = ?"
        self._database.change(query, (time.time(), post.request, *post.where))

    def cursor(self, adapter: str) -> str:
        rows = self._database.rows("SELECT place FROM places WHERE adapter = ?", (adapter,))
        return str(rows[0]["place"]) if rows else ""

    def set_cursor(self, adapter: str, cursor: str) -> None:
        self._database.change("INSERT OR REPLACE INTO places VALUES (?, ?)", (adapter, cursor))


def _digest(code: str) -> str:
    return hashlib.sha256(code.strip().upper().encode("utf-8", "replace")).hexdigest()

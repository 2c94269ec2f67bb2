"""Browser logins. A browser shows two secrets: a cookie, which it sends by itself, and a key that only our page can read.

Browsers send a cookie to every port of a host, also to a web server that an agent has started on this machine. The page's key
is kept in the page's own storage, which belongs to one port, so the cookie alone opens nothing. A login holds as long as the
token behind it does.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from typing import NamedTuple

from ..base.agent_ancestry import refuse_agents
from ..store.database import Database
from .roles import Role, Who

LOGIN_SECONDS = 30 * 86_400
_NOTE_USE_SECONDS = 60.0
_MAX_AGENT_CHARS = 200


class Login(NamedTuple):
    """A login as it is listed. `agent` is what the browser calls itself."""

    id: str
    name: str
    role: Role
    created: float
    used: float
    address: str
    agent: str


class NewLogin(NamedTuple):
    cookie: str
    page_key: str


class Logins:
    """`holds` tells whether what let a browser in (`Who.credential`) is still valid."""

    def __init__(self, database: Database, holds: Callable[[str], bool]) -> None:
        self._database, self._holds = database, holds
        self._noted: dict[str, float] = {}

    def add(self, who: Who, *, address: str = "", agent: str = "") -> NewLogin:
        made, now = NewLogin(secrets.token_urlsafe(32), secrets.token_urlsafe(32)), time.time()
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM logins WHERE expires < ?", (now,))
            connection.execute(
                "INSERT INTO logins VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    secrets.token_hex(4),
                    digest(made.cookie),
                    digest(made.page_key),
                    who.credential,
                    who.name,
                    int(who.role),
                    now,
                    now,
                    now + LOGIN_SECONDS,
                    address,
                    agent[:_MAX_AGENT_CHARS],
                ),
            )
        return made

    def find(self, cookie: str, page_key: str) -> Who | None:
        """Who logged in with both secrets; None unless both are right and the token behind them still holds."""
        query = "SELECT * FROM logins WHERE cookie = ? AND expires > ?"
        rows = self._database.rows(query, (digest(cookie), time.time()))
        if not rows or not hmac.compare_digest(digest(page_key), rows[0]["page_key"]):
            return None
        if not self._holds(rows[0]["credential"]):
            return None
        self._note_use(rows[0]["id"])
        return Who(rows[0]["name"], Role(rows[0]["role"]), rows[0]["credential"], rows[0]["id"])

    def is_there(self, login: str) -> bool:
        rows = self._database.rows("SELECT credential FROM logins WHERE id = ? AND expires > ?", (login, time.time()))
        return bool(rows) and self._holds(rows[0]["credential"])

    def all(self) -> list[Login]:
        """The logins that still hold, the one used last first."""
        rows = self._database.rows("SELECT * FROM logins WHERE expires > ? ORDER BY used DESC", (time.time(),))
        return [
            Login(each["id"], each["name"], Role(each["role"]), *(each[field] for field in Login._fields[3:]))
            for each in rows
            if self._holds(each["credential"])
        ]

    def end(self, login: str) -> bool:
        """False if there is none of that id. Raises Denied in a process that an agent started."""
        refuse_agents("end logins")
        with self._database.transaction() as connection:
            return bool(connection.execute("DELETE FROM logins WHERE id = ?", (login,)).rowcount)

    def _note_use(self, login: str) -> None:
        now = time.time()
        if now - self._noted.get(login, 0.0) < _NOTE_USE_SECONDS:
            return
        self._noted[login] = now
        with self._database.transaction() as connection:
            connection.execute("UPDATE logins SET used = ? WHERE id = ?", (now, login))


def digest(secret: str) -> str:
    """What is stored of a secret that nobody can guess."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()

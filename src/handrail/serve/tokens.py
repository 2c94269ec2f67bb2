"""Credentials: tokens and browser logins, of which only digests are stored, and links that work once.

What is on disk cannot be used to log in, as an agent that runs with your rights may read it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from pathlib import Path
from typing import NamedTuple

from ..base.agent_ancestry import refuse_agents
from ..store.database import Database
from .roles import Role, Who

LOGIN_SECONDS = 30 * 86_400
LINK_SECONDS = 600
STORE_NAME = "serve.db"
_STEPS = (
    """
    CREATE TABLE tokens (
      digest TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, role INTEGER NOT NULL, created REAL NOT NULL, used REAL
    );
    CREATE TABLE logins (digest TEXT PRIMARY KEY, name TEXT NOT NULL, role INTEGER NOT NULL, expires REAL NOT NULL);
    CREATE TABLE audit (
      id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, who TEXT NOT NULL, role INTEGER NOT NULL, address TEXT NOT NULL,
      action TEXT NOT NULL, detail TEXT NOT NULL, status INTEGER NOT NULL
    );
    """,
)
_MAX_AUDITED, _PRUNE_EVERY = 100_000, 1_000


class StoredToken(NamedTuple):
    name: str
    role: Role
    created: float
    used: float | None


class Audited(NamedTuple):
    """An audited HTTP request. `status` is that of the answer."""

    at: float
    who: str
    role: str
    address: str
    action: str
    detail: str
    status: int


class Keys:
    """`path` None: in memory. `token` is one more operator token, given at the start; `links_of` has links that stay valid."""

    def __init__(self, path: Path | None = None, *, token: str = "", links_of: Keys | None = None) -> None:
        self._database = Database(path, _STEPS)
        self._given = _digest(token) if token else ""
        self._links: dict[str, tuple[float, Who]] = dict(links_of._links) if links_of else {}

    def close(self) -> None:
        self._database.close()

    # Tokens

    def new_token(self, name: str, role: Role) -> str:
        """Returns the token, which is not stored. One with the same name is replaced.

        Raises Denied in a process that an agent started.
        """
        refuse_agents("make tokens")
        token = secrets.token_urlsafe(32)
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM tokens WHERE name = ?", (name,))
            connection.execute(
                "INSERT INTO tokens (digest, name, role, created) VALUES (?, ?, ?, ?)",
                (_digest(token), name, int(role), time.time()),
            )
        return token

    def tokens(self) -> list[StoredToken]:
        rows = self._database.rows("SELECT * FROM tokens ORDER BY name")
        return [StoredToken(row["name"], Role(row["role"]), row["created"], row["used"]) for row in rows]

    def revoke(self, name: str) -> bool:
        """Revoke a token and the browser logins by it. False if there is none of that name. Raises Denied as above."""
        refuse_agents("revoke tokens")
        with self._database.transaction() as connection:
            gone = connection.execute("DELETE FROM tokens WHERE name = ?", (name,)).rowcount
            connection.execute("DELETE FROM logins WHERE name = ?", (name,))
        return bool(gone)

    @property
    def has_token(self) -> bool:
        return bool(self._given) or bool(self.tokens())

    def by_token(self, token: str) -> Who | None:
        digest = _digest(token)
        if self._given and hmac.compare_digest(digest, self._given):
            return Who("operator", Role.OPERATE)
        rows = self._database.rows("SELECT name, role FROM tokens WHERE digest = ?", (digest,))
        return Who(rows[0]["name"], Role(rows[0]["role"])) if rows else None

    # Browsers

    def new_link(self, who: Who) -> str:
        """A code that logs in one browser, once, within LINK_SECONDS."""
        code = secrets.token_urlsafe(24)
        now = time.monotonic()
        self._links = {digest: kept for digest, kept in self._links.items() if kept[0] > now}
        self._links[_digest(code)] = (now + LINK_SECONDS, who)
        return code

    def use_link(self, code: str) -> Who | None:
        expires, who = self._links.pop(_digest(code), (0.0, None))
        return who if expires > time.monotonic() else None

    def log_in(self, who: Who) -> str:
        """The value of a browser's cookie."""
        value = secrets.token_urlsafe(32)
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM logins WHERE expires < ?", (time.time(),))
            connection.execute(
                "INSERT INTO logins (digest, name, role, expires) VALUES (?, ?, ?, ?)",
                (_digest(value), who.name, int(who.role), time.time() + LOGIN_SECONDS),
            )
        return value

    def by_cookie(self, value: str) -> Who | None:
        rows = self._database.rows(
            "SELECT name, role FROM logins WHERE digest = ? AND expires > ?", (_digest(value), time.time())
        )
        return Who(rows[0]["name"], Role(rows[0]["role"]), by_cookie=True) if rows else None

    def log_out(self, value: str) -> None:
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM logins WHERE digest = ?", (_digest(value),))

    # Audit

    def note(self, record: Audited) -> None:
        with self._database.transaction() as connection:
            number = connection.execute(
                "INSERT INTO audit (at, who, role, address, action, detail, status) VALUES (?, ?, ?, ?, ?, ?, ?)",
                record._replace(role=int(Role.named(record.role))),  # type: ignore[arg-type]
            ).lastrowid
            if number and number % _PRUNE_EVERY == 0:
                connection.execute("DELETE FROM audit WHERE id <= ?", (number - _MAX_AUDITED,))

    def audited(self, limit: int) -> list[Audited]:
        """The newest last."""
        rows = self._database.rows("SELECT * FROM audit ORDER BY id DESC LIMIT ?", (limit,))
        return [
            Audited(
                row["at"],
                row["who"],
                Role(row["role"]).word,
                row["address"],
                row["action"],
                row["detail"],
                row["status"],
            )
            for row in reversed(rows)
        ]


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()

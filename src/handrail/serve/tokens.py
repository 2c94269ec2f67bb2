"""Credentials and roles: tokens, of which only digests are stored, links that work once, browser logins, and the audit of who
came in.

What is on disk cannot be used to log in, as an agent that runs with your rights may read it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from ..base.own_process import refuse_agents
from ..store.database import Database
from ..types import JsonDict

LINK_SECONDS = 600
STORE_NAME = "serve.db"
# What a login link that the server printed was made from, if no token was given at its start.
_NO_TOKEN = "start"
_MAX_AUDITED, _PRUNE_EVERY = 100_000, 1_000
LOGIN_SECONDS = 30 * 86_400
_NOTE_USE_SECONDS = 60.0
_MAX_AGENT_CHARS = 200


class Role(IntEnum):
    """Watch, answer questions, or operate the tools: each includes those before it."""

    WATCH = 1
    APPROVE = 2
    OPERATE = 3

    @property
    def word(self) -> str:
        return self.name.lower()

    @classmethod
    def named(cls, word: str) -> Role:
        """Raises ValueError."""
        try:
            return cls[word.upper()]
        except KeyError:
            raise ValueError(f"unknown role {word!r}; known: {', '.join(role.word for role in cls)}") from None


class Who(NamedTuple):
    """An authenticated client. `credential` names what let it in: while that holds, so does whatever was made from it.
    `login` is the id of a browser's login."""

    name: str
    role: Role
    credential: str = ""
    login: str = ""


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
    """Browser logins. A browser shows two secrets: a cookie, which it sends by itself, and a key that only our page can read.

    Browsers send a cookie to every port of a host, also to a web server that an agent has started on this machine. The page's
    key is kept in the page's own storage, which belongs to one port, so the cookie alone opens nothing. A login holds as long
    as the token behind it does.

    `holds` tells whether what let a browser in (`Who.credential`) is still valid.
    """

    def __init__(self, database: Database, holds: Callable[[str], bool]) -> None:
        self._database, self._holds = database, holds
        self._noted: dict[str, float] = {}

    def add(self, who: Who, *, address: str = "", agent: str = "") -> NewLogin:
        made, now = NewLogin(secrets.token_urlsafe(32), secrets.token_urlsafe(32)), time.time()
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM logins WHERE expires < ?", (now,))
            login = (secrets.token_hex(4), digest(made.cookie), digest(made.page_key))
            owner = (who.credential, who.name, int(who.role))
            use = (now, now, now + LOGIN_SECONDS, address, agent[:_MAX_AGENT_CHARS])
            connection.execute("INSERT INTO logins VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", login + owner + use)
        return made

    def find(self, cookie: str, page_key: str) -> Who | None:
        """Who logged in with both secrets; None unless both are right and the token behind them still holds."""
        query = "SELECT * FROM logins WHERE cookie = ? AND expires > ?"
        now = time.time()
        for row in self._database.rows(query, (digest(cookie), now)):
            if hmac.compare_digest(digest(page_key), row["page_key"]) and self._holds(row["credential"]):
                if now - self._noted.get(row["id"], 0.0) >= _NOTE_USE_SECONDS:
                    self._noted[row["id"]] = now
                    self._database.change("UPDATE logins SET used = ? WHERE id = ?", (now, row["id"]))
                return Who(row["name"], Role(row["role"]), row["credential"], row["id"])
        return None

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
        return bool(self._database.change("DELETE FROM logins WHERE id = ?", (login,)))


def digest(secret: str) -> str:
    """What is stored of a secret that nobody can guess."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


class StoredToken(NamedTuple):
    name: str
    role: Role
    created: float
    used: float | None


def view_of(each: StoredToken | Login) -> JsonDict:
    """For programs."""
    return {**each._asdict(), "role": each.role.word}


class Audited(NamedTuple):
    """An audited HTTP request. `who` and `role` are empty for one whose credentials were refused; `status` is that of the
    answer."""

    at: float
    who: str
    role: str
    address: str
    action: str
    detail: str
    status: int


class Keys:
    """`path` None: in memory. `token` is one more operator token, given at the server's start; None in a process that is not
    the server and does not know it, where the logins that came from it are taken as valid. `links_of` has links that stay
    valid."""

    def __init__(self, path: Path | None = None, *, token: str | None = "", links_of: Keys | None = None) -> None:
        self._database = Database(path, Path(__file__).with_suffix(".sql"))
        self._token, self._given = token, digest(token) if token else ""
        self._links: dict[str, tuple[float, Who]] = dict(links_of._links) if links_of else {}
        self.logins = Logins(self._database, self._holds)

    def close(self) -> None:
        self._database.close()

    def new_token(self, name: str, role: Role) -> str:
        """Returns the token, which is not stored. One with the same name is replaced.

        Raises Denied in a process that an agent started.
        """
        refuse_agents("make tokens")
        token = secrets.token_urlsafe(32)
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM tokens WHERE name = ?", (name,))
            row = (digest(token), name, int(role), time.time())
            connection.execute("INSERT INTO tokens (digest, name, role, created) VALUES (?, ?, ?, ?)", row)
        return token

    def tokens(self) -> list[StoredToken]:
        rows = self._database.rows("SELECT * FROM tokens ORDER BY name")
        return [StoredToken(row["name"], Role(row["role"]), row["created"], row["used"]) for row in rows]

    def revoke(self, name: str) -> bool:
        """Revoke a token, and with it the browser logins and the links that came from it. False if there is none. Raises
        Denied as above."""
        refuse_agents("revoke tokens")
        return bool(self._database.change("DELETE FROM tokens WHERE name = ?", (name,)))

    @property
    def has_token(self) -> bool:
        return bool(self._given) or bool(self.tokens())

    def by_token(self, token: str) -> Who | None:
        digested = digest(token)
        if self._given and hmac.compare_digest(digested, self._given):
            return self.operator
        rows = self._database.rows("SELECT name, role FROM tokens WHERE digest = ?", (digested,))
        return Who(rows[0]["name"], Role(rows[0]["role"]), digested) if rows else None

    @property
    def operator(self) -> Who:
        """Whoever started the server."""
        return Who("operator", Role.OPERATE, self._start_credential)

    @cached_property
    def _start_credential(self) -> str:
        """Stored with logins, so it must not help to guess a token that somebody chose."""
        if not self._token:
            return _NO_TOKEN
        salt = self._database.rows("SELECT value FROM salt")[0]["value"]
        return f"{_NO_TOKEN}:{hashlib.scrypt(self._token.encode(), salt=salt, n=2**14, r=8, p=1, dklen=16).hex()}"

    def _holds(self, credential: str) -> bool:
        if credential.startswith(_NO_TOKEN):
            return self._token is None or credential == self._start_credential
        return bool(self._database.rows("SELECT 1 FROM tokens WHERE digest = ?", (credential,)))

    def is_valid(self, who: Who) -> bool:
        """Whether somebody who was let in before would be let in now."""
        return self.logins.is_there(who.login) if who.login else self._holds(who.credential)

    def new_link(self, who: Who) -> str:
        """A code that logs in one browser, once, within LINK_SECONDS."""
        code = secrets.token_urlsafe(24)
        now = time.monotonic()
        self._links = {digested: kept for digested, kept in self._links.items() if kept[0] > now}
        self._links[digest(code)] = (now + LINK_SECONDS, who)
        return code

    def use_link(self, code: str) -> Who | None:
        expires, who = self._links.pop(digest(code), (0.0, None))
        return who if who is not None and expires > time.monotonic() and self._holds(who.credential) else None

    def note(self, record: Audited) -> int:
        """The number of the entry. A status of 0: it has begun."""
        with self._database.transaction() as connection:
            number = connection.execute(
                "INSERT INTO audit (at, who, role, address, action, detail, status) VALUES (?, ?, ?, ?, ?, ?, ?)",
                record._replace(role=int(Role.named(record.role)) if record.role else 0),  # type: ignore[arg-type]
            ).lastrowid
            if number and number % _PRUNE_EVERY == 0:
                connection.execute("DELETE FROM audit WHERE id <= ?", (number - _MAX_AUDITED,))
        return int(number or 0)

    def settle(self, number: int, status: int) -> None:
        """Store how a request ended that was audited when it began."""
        self._database.change("UPDATE audit SET status = ? WHERE id = ?", (status, number))

    def audited(self, limit: int) -> list[Audited]:
        """The newest last."""
        rows = self._database.rows("SELECT * FROM audit ORDER BY id DESC LIMIT ?", (limit,))
        roles = {0: "", **{int(role): role.word for role in Role}}
        found = ({**dict(row), "role": roles[row["role"]]} for row in reversed(rows))
        return [Audited(*(row[field] for field in Audited._fields)) for row in found]

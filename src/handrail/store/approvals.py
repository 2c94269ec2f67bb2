"""Approval requests that outlive their process: answered exactly once, by the first answer, or expired.

With them: what was allowed for longer than once, and who decided what.
"""

import json
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from ..base.own_process import has_exited, refuse_agents, runtime_id
from ..errors import RequestNotFound, StoreError
from ..protocols import ActionKind, Answer, ApprovalRequest, Concern, Decision
from .database import Database, reading_entry

# How long closed requests are kept, so that a late answer can be told what happened.
_KEEP_SECONDS = 30 * 86_400
_PRUNE_SECONDS = 60.0
_EXPIRE_SECONDS = 1.0
_MAX_TEXT = 20_000


class State(Enum):
    PENDING = "pending"
    ANSWERED = "answered"
    CLAIMED = "claimed"  # answered, and the call has continued
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"  # the call was cancelled


class StoredRequest(NamedTuple):
    """A request in the store. `is_waiting`: the process that asked still runs."""

    request: ApprovalRequest
    state: State
    created: float
    answer: Answer | None
    answered: float | None
    is_waiting: bool


class Granted(Exception):  # not an error
    """Nothing was asked: a grant may cover it."""


_ADD_REQUEST = (
    "INSERT INTO requests (id, created, expires, fingerprint, owner, state, question) SELECT ?, ?, ?, ?, ?, ?, ?"
)
_ID = "SELECT id FROM requests WHERE id = ?"
_LEFT = "SELECT * FROM requests WHERE fingerprint = ? AND state IN ('pending', 'answered') AND expires > ?"


def _held(scopes: Sequence[str]) -> str:
    """Finds the grants that hold for one of these now, whose time is the last parameter."""
    return (
        f"SELECT * FROM grants WHERE scope IN ({', '.join('?' * len(scopes))}) AND (expires IS NULL OR expires > ?) "
        "AND (uses_left IS NULL OR uses_left > 0)"
    )


def new_id() -> str:
    return secrets.token_hex(4)


class ApprovalStore:
    """Requests, with the grants and the decisions in the same file. `path` None keeps everything in memory."""

    def __init__(self, path: Path | None = None) -> None:
        self.database = Database(path, Path(__file__).with_suffix(".sql"), durable=True)
        self.grants = GrantStore(self.database)
        self.decisions = DecisionLog(self.database)
        self._listeners: list[Callable[[str], object]] = []
        self._expired_at = self._pruned_at = 0.0

    def close(self) -> None:
        self.database.close()

    def ask(
        self, request: ApprovalRequest, *, fingerprint: str, owner: str = "", unless: Sequence[str] = ()
    ) -> StoredRequest:
        """Store a request. One with the same fingerprint whose process has exited is taken over instead: its id stays, and
        so does an answer that came meanwhile. `owner` is for who asks on behalf of processes elsewhere: `WORK#ATTEMPT`, of
        which a later attempt takes over from the earlier ones. Raises Granted if one of the scopes `unless` has a grant."""
        now, me = time.time(), owner or runtime_id()
        if time.monotonic() - self._expired_at > _EXPIRE_SECONDS:
            with self.database.transaction() as connection:
                self._expire(connection, now)
        request = request._replace(id=request.id or new_id())
        values = (request.id, now, request.expires_at, fingerprint, me, State.PENDING.value, _question(request))
        left, granted = (fingerprint, now), (*unless, now)
        # Nearly always nothing is left and nothing granted: one statement then.
        is_new = " AND ".join(f"NOT EXISTS ({query})" for query in (_LEFT, _held(unless), _ID))
        if not self.database.change(f"{_ADD_REQUEST} WHERE {is_new}", (*values, *left, *granted, request.id)):
            with self.database.transaction() as connection:
                if connection.execute(_held(unless), granted).fetchone() is not None:
                    raise Granted
                for row in connection.execute(f"{_LEFT} ORDER BY created", left).fetchall():
                    if has_exited(row["owner"]) or _is_earlier_attempt(row["owner"], me):
                        # An unanswered request gets a new deadline.
                        expires = request.expires_at if row["state"] == State.PENDING.value else row["expires"]
                        taken = "UPDATE requests SET owner = ?, expires = ? WHERE id = ?"
                        connection.execute(taken, (me, expires, row["id"]))
                        return _stored({**dict(row), "owner": me, "expires": expires})
                # Two of the short ids may be the same.
                while connection.execute(_ID, (request.id,)).fetchone() is not None:
                    request = request._replace(id=new_id())
                connection.execute(_ADD_REQUEST, (request.id, *values[1:]))
        return StoredRequest(request, State.PENDING, now, None, None, is_waiting=True)

    def answer(self, request_id: str, answer: Answer, *, claims: bool = False) -> StoredRequest | None:
        """Answer a request. Returns None, or the earlier outcome if this answer came too late and changes nothing.

        `claims`: the call that asked brings the answer, and continues with it. Raises Denied for a yes from a process that an
        agent started.
        """
        state = State.CLAIMED if claims else State.ANSWERED
        if answer.decision.allows or answer.edited:
            refuse_agents("answer requests")
        now = time.time()
        changed = self.database.change(
            "UPDATE requests SET state = ?, decision = ?, by = ?, why = ?, seconds = ?, uses = ?, edited = ?, "
            "answered = ? WHERE id = ? AND state = 'pending' AND expires > ?",
            (state.value, answer.decision.value, *answer[1:5], answer.edited, now, request_id, now),
        )
        if not changed:
            with self.database.transaction() as connection:
                self._expire(connection, now)
            return self.get(request_id)
        for listener in tuple(self._listeners):
            listener(request_id)
        return None

    def claim(self, request_id: str) -> Answer | None:
        """Take a request's answer, if it has one. Only one caller gets it."""
        changed = self.database.change(
            "UPDATE requests SET state = 'claimed' WHERE id = ? AND state = 'answered'", (request_id,)
        )
        return self.get(request_id).answer if changed else None

    def withdraw(self, request_id: str, *, state: State = State.WITHDRAWN) -> bool:
        """Close a request that nobody waits for any more. False when it was answered before."""
        changed = self.database.change(
            "UPDATE requests SET state = ?, answered = ? WHERE id = ? AND state = 'pending'",
            (state.value, time.time(), request_id),
        )
        return bool(changed)

    def get(self, request_id: str) -> StoredRequest:
        """By its id, or a unique prefix of it. Raises RequestNotFound."""
        prefix = request_id.replace("%", "").replace("_", "")
        rows = self.database.rows("SELECT * FROM requests WHERE id LIKE ? LIMIT 2", (f"{prefix}%",)) if prefix else []
        if len(rows) > 1:
            raise RequestNotFound(f"more than one request starts with {request_id!r}; give more of its id")
        if not rows:
            raise RequestNotFound(f"no request {request_id!r}; `handrail approvals list` shows the pending ones")
        return _stored(rows[0])

    def pending(self) -> list[StoredRequest]:
        """The requests that can be answered now, the oldest first."""
        with self.database.transaction() as connection:
            self._expire(connection, time.time())
        rows = self.database.rows("SELECT * FROM requests WHERE state = 'pending' ORDER BY created")
        return [_stored(row) for row in rows]

    def answered_among(self, request_ids: Sequence[str]) -> list[str]:
        """Which of these have an answer by now."""
        marks = ", ".join("?" * len(request_ids))
        query = f"SELECT id FROM requests WHERE state = 'answered' AND id IN ({marks})"
        return [row["id"] for row in self.database.rows(query, request_ids)]

    def listen(self, listener: Callable[[str], object]) -> Callable[[], object]:
        """Call `listener` with the id of each request that is answered here, in the answering thread. Returns how to stop it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _expire(self, connection: Any, now: float) -> None:
        # An answer to a call that is gone is valid as long as the request would have been.
        self._expired_at = time.monotonic()
        connection.execute(
            "UPDATE requests SET state = 'expired' WHERE state IN ('pending', 'answered') AND expires <= ?", (now,)
        )
        if not self._pruned_at or time.monotonic() - self._pruned_at > _PRUNE_SECONDS:
            self._pruned_at = time.monotonic()
            connection.execute("DELETE FROM requests WHERE state != 'pending' AND created < ?", (now - _KEEP_SECONDS,))


def _is_earlier_attempt(owner: str, mine: str) -> bool:
    return "#" in mine and owner != mine and owner.rpartition("#")[0] == mine.rpartition("#")[0]


def _question(request: ApprovalRequest) -> str:
    """What is stored of a request: what the user needs to see, not the arguments, which can be long and secret."""
    if len(request.text) > _MAX_TEXT:
        raise StoreError(f"a request of {len(request.text):,} characters is too long for anybody to answer")
    kept = request._asdict()
    for name in ("arguments", "id", "expires_at"):
        del kept[name]
    kept["kind"] = request.kind.value
    kept["offers"] = [decision.value for decision in request.offers]
    return json.dumps(kept)


def _stored(row: Any) -> StoredRequest:
    with reading_entry(f"the approval request {row['id']!r}"):
        fields = json.loads(row["question"])
        fields["kind"] = ActionKind(fields["kind"])
        fields["concerns"] = tuple(Concern(*concern) for concern in fields["concerns"])
        fields["offers"] = tuple(map(Decision, fields["offers"]))
        request = ApprovalRequest(arguments={}, id=row["id"], expires_at=row["expires"], **fields)
        answer = None
        if row["decision"] is not None:
            given = {name: row[name] for name in ("by", "why", "seconds", "uses", "edited")}
            answer = Answer(Decision(row["decision"]), **given)
        times, is_waiting = (row["created"], answer, row["answered"]), not has_exited(row["owner"])
        return StoredRequest(request, State(row["state"]), *times, is_waiting)


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


_ADD_DECISION = (
    f"INSERT INTO decisions ({', '.join(DecisionRecord._fields[:-1])}) "
    f"VALUES ({', '.join('?' * (len(DecisionRecord._fields) - 1))})"
)


class DecisionLog:
    """Grows to a number of rows; the oldest go first."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._until_cut = 0

    def add(self, record: DecisionRecord) -> None:
        values = record._replace(keys=json.dumps(record.keys), at=record.at or time.time())  # type: ignore[arg-type]
        self._database.change(_ADD_DECISION, values[:-1])
        self._until_cut -= 1
        if self._until_cut < 0:
            self._until_cut = _ROWS_BETWEEN_CUTS
            self._database.change("DELETE FROM decisions WHERE id <= (SELECT max(id) FROM decisions) - ?", (_MAX_ROWS,))

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


# A scope that ends with its process; others are names that a later process can use again.
_PROCESS_SCOPE = "process:"


class StoredGrant(NamedTuple):
    id: int
    scope: str
    key: str
    by: str
    created: float
    expires: float | None
    uses_left: int | None


class GrantStore:
    """Grants by scope (a task, a session, a process) and key (a rule and its reach)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self, scope: str, keys: Iterable[str], *, by: str, seconds: float | None = None, uses: int | None = None
    ) -> None:
        now = time.time()
        expires = None if seconds is None else now + seconds
        with self._database.transaction() as connection:
            for key in keys:
                connection.execute("DELETE FROM grants WHERE scope = ? AND key = ?", (scope, key))
                connection.execute(
                    "INSERT INTO grants (scope, key, by, created, expires, uses_left, owner) VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (scope, key, by, now, expires, uses, runtime_id()),
                )

    def of(self, scopes: Sequence[str]) -> list[StoredGrant]:
        """The grants that hold now for one of these."""
        rows = self._database.rows(f"{_held(scopes)} ORDER BY id", (*scopes, time.time()))
        return [_grant(row) for row in rows]

    def use(self, grants: Iterable[StoredGrant]) -> bool:
        """Count one use of each. False, and nothing is counted, when one of them does not hold any more."""
        try:
            with self._database.transaction() as connection:
                for grant in grants:
                    held = connection.execute(
                        "UPDATE grants SET uses_left = uses_left - 1 WHERE id = ? AND (uses_left IS NULL OR uses_left > 0) "
                        "AND (expires IS NULL OR expires > ?)",
                        (grant.id, time.time()),
                    ).rowcount
                    if not held:
                        raise LookupError(grant.id)
        except LookupError:
            return False
        return True

    def all(self) -> list[StoredGrant]:
        """Every grant that holds. What ran out is taken away on the way."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM grants WHERE expires <= ? OR uses_left <= 0", (time.time(),))
            rows = connection.execute("SELECT * FROM grants ORDER BY id").fetchall()
            gone = [row["id"] for row in rows if row["scope"].startswith(_PROCESS_SCOPE) and has_exited(row["owner"])]
            connection.executemany("DELETE FROM grants WHERE id = ?", [(number,) for number in gone])
        return [_grant(row) for row in rows if row["id"] not in gone]

    def forget(self, scopes: Sequence[str]) -> None:
        """Take back all grants of these."""
        with self._database.transaction() as connection:
            connection.executemany("DELETE FROM grants WHERE scope = ?", [(scope,) for scope in scopes])

    def revoke(self, number: int) -> StoredGrant | None:
        """Take a grant back. None when there is none of that number."""
        with self._database.transaction() as connection:
            row = connection.execute("SELECT * FROM grants WHERE id = ?", (number,)).fetchone()
            connection.execute("DELETE FROM grants WHERE id = ?", (number,))
        return None if row is None else _grant(row)


def _grant(row: object) -> StoredGrant:
    return StoredGrant(*(row[name] for name in StoredGrant._fields))  # type: ignore[index]

"""Approval requests that outlive their process: answered exactly once, by the first answer, or expired."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from ..base.agent_ancestry import refuse_agents
from ..base.runtime_id import has_exited, runtime_id
from ..errors import RequestNotFound, StoreError
from ..protocols import ActionKind, Answer, ApprovalRequest, Concern, Decision
from .database import Database
from .decisions import DecisionLog
from .grants import GrantStore

# How long closed requests are kept, so that a late answer can be told what happened.
_KEEP_SECONDS = 30 * 86_400
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


class ApprovalStore:
    """Requests, with the grants and the decisions in the same file. `path` None keeps everything in memory."""

    def __init__(self, path: Path | None = None) -> None:
        self.database = Database(path, Path(__file__).with_suffix(".sql"), durable=True)
        self.grants = GrantStore(self.database)
        self.decisions = DecisionLog(self.database)
        self._listeners: list[Callable[[str], object]] = []

    def close(self) -> None:
        self.database.close()

    def ask(self, request: ApprovalRequest, *, fingerprint: str) -> StoredRequest:
        """Store a request. One with the same fingerprint whose process has exited is taken over instead: its id stays, and
        so does an answer that came meanwhile."""
        now, me = time.time(), runtime_id()
        with self.database.transaction() as connection:
            _expire(connection, now)
            left = connection.execute(
                "SELECT * FROM requests WHERE fingerprint = ? AND state IN ('pending', 'answered') ORDER BY created",
                (fingerprint,),
            ).fetchall()
            for row in left:
                if has_exited(row["owner"]):
                    # An unanswered request gets a new deadline.
                    expires = request.expires_at if row["state"] == State.PENDING.value else row["expires"]
                    connection.execute(
                        "UPDATE requests SET owner = ?, expires = ? WHERE id = ?", (me, expires, row["id"])
                    )
                    return _stored(connection.execute("SELECT * FROM requests WHERE id = ?", (row["id"],)).fetchone())
            request = request._replace(id=secrets.token_hex(4))
            connection.execute(
                "INSERT INTO requests (id, created, expires, fingerprint, owner, state, question) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (request.id, now, request.expires_at, fingerprint, me, State.PENDING.value, _question(request)),
            )
        return StoredRequest(request, State.PENDING, now, None, None, is_waiting=True)

    def answer(self, request_id: str, answer: Answer) -> StoredRequest | None:
        """Answer a request. Returns None, or the earlier outcome if this answer came too late and changes nothing.

        Raises Denied for a yes from a process that an agent started.
        """
        if answer.decision.allows:
            refuse_agents("answer requests")
        now = time.time()
        with self.database.transaction() as connection:
            _expire(connection, now)
            changed = connection.execute(
                "UPDATE requests SET state = 'answered', decision = ?, by = ?, why = ?, seconds = ?, uses = ?, answered = ? "
                "WHERE id = ? AND state = 'pending'",
                (answer.decision.value, answer.by, answer.why, answer.seconds, answer.uses, now, request_id),
            ).rowcount
        if not changed:
            return self.get(request_id)
        self._notify(request_id)
        return None

    def claim(self, request_id: str) -> Answer | None:
        """Take a request's answer, if it has one. Only one caller gets it."""
        with self.database.transaction() as connection:
            changed = connection.execute(
                "UPDATE requests SET state = 'claimed' WHERE id = ? AND state = 'answered'", (request_id,)
            ).rowcount
        return self.get(request_id).answer if changed else None

    def withdraw(self, request_id: str, *, state: State = State.WITHDRAWN) -> bool:
        """Close a request that nobody waits for any more. False when it was answered before."""
        with self.database.transaction() as connection:
            changed = connection.execute(
                "UPDATE requests SET state = ?, answered = ? WHERE id = ? AND state = 'pending'",
                (state.value, time.time(), request_id),
            ).rowcount
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
            _expire(connection, time.time())
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

    def _notify(self, request_id: str) -> None:
        for listener in tuple(self._listeners):
            listener(request_id)


def _expire(connection: Any, now: float) -> None:
    connection.execute("UPDATE requests SET state = 'expired' WHERE state = 'pending' AND expires <= ?", (now,))
    # An answer to a call that is gone is valid as long as the request would have been.
    connection.execute("UPDATE requests SET state = 'expired' WHERE state = 'answered' AND expires <= ?", (now,))
    connection.execute("DELETE FROM requests WHERE state != 'pending' AND created < ?", (now - _KEEP_SECONDS,))


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
    fields = json.loads(row["question"])
    fields["kind"] = ActionKind(fields["kind"])
    fields["concerns"] = tuple(Concern(*concern) for concern in fields["concerns"])
    fields["offers"] = tuple(map(Decision, fields["offers"]))
    request = ApprovalRequest(arguments={}, id=row["id"], expires_at=row["expires"], **fields)
    answer = None
    if row["decision"] is not None:
        answer = Answer(Decision(row["decision"]), row["by"], row["why"], row["seconds"], row["uses"])
    return StoredRequest(
        request, State(row["state"]), row["created"], answer, row["answered"], is_waiting=not has_exited(row["owner"])
    )

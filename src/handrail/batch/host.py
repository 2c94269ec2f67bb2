"""What the workers of a batch may ask of its driver: leases, the journal, questions, results. Every method is one request."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import HandrailError, StoreError
from ..store.approvals import ApprovalStore, StoredRequest
from ..store.ledger import Lease, SqlLedger
from ..types import JsonDict

if TYPE_CHECKING:
    from ..protocols import ApprovalRequest

log = logging.getLogger(__name__)
TRAJECTORIES = "trajectories.jsonl"
# Requests that the ledger answers, and those that are about the worker itself.
_OF_LEDGER = frozenset({"begin", "end", "keep_reply"})
_OF_WORKER = frozenset({"lease", "renew", "finish", "release", "ask"})
_APPROVALS = frozenset({"answer", "answered_among", "get", "pending"})
_GRANTS = frozenset({"add", "of", "use", "forget"})


class Settings(NamedTuple):
    """How a batch runs. `setup` is what each worker is told when it begins."""

    run: str
    attempts: int = 3
    lease_seconds: float = 30.0
    sessions: int = 8
    setup: Mapping[str, Any] = MappingProxyType({})


class Host:
    """The leases are kept here, by the clock that no one sets; who does not renew in time has lost its tasks."""

    def __init__(self, ledger: SqlLedger, settings: Settings, *, out: Path, approvals: ApprovalStore | None) -> None:
        self._ledger, self._settings, self._out, self._approvals = ledger, settings, out, approvals
        self._until: dict[str, float] = {}
        self._lock = threading.Lock()
        self.is_stopping = False
        self.begun: set[str] = set()  # workers that have ever asked for something

    def handle(self, worker: str, method: str, arguments: tuple[Any, ...]) -> Any:
        self.begun.add(worker)
        if method in _OF_LEDGER:
            return getattr(self._ledger, method)(*arguments)
        if not hasattr(self, f"do_{method}"):
            raise HandrailError(f"unknown request {method!r}: are driver and worker of the same version?")
        who = (worker,) if method in _OF_WORKER else ()
        return getattr(self, f"do_{method}")(*who, *arguments)

    def lost(self, worker: str) -> None:
        """Its connection has ended: it was killed, or can begin nothing any more."""
        self._until[worker] = 0.0

    def expire(self) -> None:
        """Take the tasks of workers that are lost, or have not renewed their leases."""
        for worker, until in tuple(self._until.items()):
            if until < time.monotonic():
                why = f"the worker {worker} {'did not answer' if until else 'was lost'}"
                self._ledger.give_back(worker, why, self._settings.attempts)
                self._until.pop(worker, None)

    def do_setup(self) -> JsonDict:
        return {**self._settings.setup, **self._settings._asdict()}

    def do_lease(self, worker: str, count: int) -> list[Lease] | None:
        """None: there is nothing left to do, now or later."""
        if self.is_stopping:
            return None
        leases = self._ledger.lease(worker, count)
        if leases:
            self._until[worker] = time.monotonic() + self._settings.lease_seconds
        return leases

    def do_renew(self, worker: str) -> tuple[set[tuple[str, int]], bool]:
        """What the worker still has, and whether to stop."""
        if self._until.get(worker):  # first, as a ledger that cannot be used now is no fault of the worker
            self._until[worker] = time.monotonic() + self._settings.lease_seconds
        return self._ledger.held(worker), self.is_stopping

    def do_finish(
        self, worker: str, task: str, attempt: int, result: JsonDict, trajectory: JsonDict | None, is_failure: bool
    ) -> bool:
        """False for an attempt that has lost its task: its result is refused."""
        result = {**result, "attempt": attempt, "worker": worker}
        if is_failure:
            return self._ledger.fail(task, attempt, result, self._settings.attempts)
        with self._lock:
            if (task, attempt) not in self._ledger.held(worker):
                return False
            if trajectory is not None:  # a line that the ledger does not know is dropped by the next resume
                self._write({"id": task, "attempt": attempt, **result, **trajectory})
            return self._ledger.finish(task, attempt, result)

    def _write(self, line: JsonDict) -> None:
        data = json.dumps(line, ensure_ascii=False).encode() + b"\n"
        with open(self._out / TRAJECTORIES, "ab", buffering=0, opener=_private) as file:
            start = file.tell()
            try:
                if file.write(data) == len(data):
                    return
            except OSError as error:
                log.warning("%s cannot be written: %s", file.name, error.strerror)
            file.truncate(start)
        raise StoreError(f"{self._out / TRAJECTORIES} cannot be written: the disk is full; make room on its disk")

    def do_release(self, worker: str, task: str, attempt: int) -> None:
        """The worker gives a task back because it ends."""
        if (task, attempt) in self._ledger.held(worker):
            self._ledger.fail(task, attempt, {"error": "stopped"}, 0)

    def do_ask(self, worker: str, request: ApprovalRequest, fingerprint: str, task: str, attempt: int) -> StoredRequest:
        owner = f"batch-{self._settings.run}-{task}#{attempt}" if task else worker
        stored = self._store.ask(request, fingerprint=fingerprint, owner=owner)
        self._ledger.note_question(stored.request.id, task, attempt)
        return stored

    def do_settle(self, request: str, method: str, task: str, attempt: int, *more: Any) -> Any:
        """`claim` or `withdraw`: only by who asked last, as a later attempt may have taken the question over."""
        if self._ledger.asker(request) != (task, attempt):
            return None
        return self._store.claim(request) if method == "claim" else self._store.withdraw(request, state=more[0])

    def do_approvals(self, part: str, method: str, arguments: tuple[Any, ...], named: JsonDict) -> Any:
        store = self._store
        known = {"": (_APPROVALS, store), "grants": (_GRANTS, store.grants), "decisions": ({"add"}, store.decisions)}
        allowed, target = known[part]
        if method not in allowed:
            raise HandrailError(f"workers may not {method} approvals")
        return getattr(target, method)(*arguments, **named)

    def do_approvals_version(self) -> int:
        return self._store.database.version_of_data()

    @property
    def _store(self) -> ApprovalStore:
        if self._approvals is None:
            raise HandrailError("nobody is asked in this batch")
        return self._approvals


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)

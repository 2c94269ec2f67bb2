"""The approval store of a worker: it is the driver's, so that all questions are in one inbox and outlive the worker."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from ..base.workers import pool
from ..protocols import Answer, ApprovalRequest
from ..store.approvals import State, StoredRequest
from .link import Requests

T = TypeVar("T")
Leases = Mapping[str, tuple[str, int]]  # the task and attempt of each session


class RemoteApprovals:
    """Takes the place of an `ApprovalStore`. Answers are found by the gate's poll, as those of any other process are."""

    def __init__(self, link: Requests, leases: Leases) -> None:
        self._link, self._leases = link, leases
        self._asked: dict[str, tuple[str, int]] = {}
        self.grants = _Part(link, "grants")
        self.decisions = _Part(link, "decisions")
        self.database = self

    def ask(self, request: ApprovalRequest, *, fingerprint: str) -> StoredRequest:
        lease = self._leases.get(request.session_id or "", ("", 0))
        stored: StoredRequest = self._link.call("ask", request, fingerprint, *lease)
        self._asked[stored.request.id] = lease
        return stored

    def claim(self, request_id: str) -> Answer | None:
        answer: Answer | None = self._link.call("settle", request_id, "claim", *self._asked.get(request_id, ("", 0)))
        return answer

    def withdraw(self, request_id: str, *, state: State = State.WITHDRAWN) -> bool:
        lease = self._asked.get(request_id, ("", 0))
        return bool(self._link.call("settle", request_id, "withdraw", *lease, state))

    def version_of_data(self) -> int:
        return int(self._link.call("approvals_version"))

    def write(self, work: Callable[..., T], *arguments: object) -> Future[T]:
        """Beside the event loop. Each request is committed by the driver, with all that waits there."""
        return pool.submit(work, *arguments)

    def transaction(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def listen(self, listener: Callable[[str], object]) -> Callable[[], object]:  # noqa: ARG002  nothing is answered here
        return lambda: None

    def close(self) -> None:
        """The link is the worker's."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_Part(self._link, ""), name)


class _Part:
    def __init__(self, link: Requests, name: str) -> None:
        self._link, self._name = link, name

    def __getattr__(self, method: str) -> Any:
        return partial(self._call, method)

    def _call(self, method: str, *arguments: Any, **named: Any) -> Any:
        return self._link.call("approvals", self._name, method, arguments, named)

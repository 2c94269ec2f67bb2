"""A worker: it pulls leases from the driver and runs their sessions, several at a time, until it is told to stop. Its approval
store is the driver's, so that all questions are in one inbox and outlive the worker."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from ..agent.models.model_selection import build, known_providers
from ..agent.telemetry import start_exporting
from ..app import Handrail
from ..approval.requests import QueueApprover
from ..base.workers import pool
from ..effects.calls import Calls
from ..errors import Fenced, HandrailError, StoreError
from ..protocols import Answer, ApprovalRequest
from ..store.approvals import Granted, State, StoredRequest
from ..store.ledger import Lease, work_folder
from .attempt import Attempt, Journal, Parts, command_reward
from .folder import Artifacts
from .host import Address, Call, Link, LinkLost

_POLL_SECONDS = 0.3
_RENEW_SECONDS = 1.0
T = TypeVar("T")
Leases = Mapping[str, tuple[str, int]]  # the task and attempt of each session


class Worker:
    """`sessions` at a time. `leases` are the task and attempt of each session that runs."""

    def __init__(self, parts: Parts, call: Call, sessions: int, leases: dict[str, tuple[str, int]]) -> None:
        self._parts, self._call, self._sessions, self._leases = parts, call, sessions, leases
        self._running: dict[tuple[str, int], Attempt] = {}
        self._stop = threading.Event()

    def stop(self) -> None:
        """Give up all that runs. What is to be done is still in the ledger."""
        self._stop.set()
        for attempt in tuple(self._running.values()):
            attempt.cancel("the batch was stopped")

    async def run(self) -> None:
        renewing = threading.Thread(target=self._renew, name="handrail-batch-renew", daemon=True)
        renewing.start()
        tasks: set[asyncio.Task[None]] = set()
        try:
            while not self._stop.is_set():
                leases = await asyncio.to_thread(self._pull, self._sessions - len(tasks))
                tasks |= {asyncio.create_task(self._one(lease)) for lease in leases}
                if tasks:
                    _, tasks = await asyncio.wait(tasks, timeout=_POLL_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                else:
                    await asyncio.to_thread(self._stop.wait, _POLL_SECONDS)
        finally:
            self.stop()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.to_thread(renewing.join)

    def _pull(self, free: int) -> list[Lease]:
        try:
            leases = self._call("lease", free) if free > 0 else []
        except StoreError:
            self._stop.wait(_RENEW_SECONDS)
            return []
        except LinkLost:
            leases = None
        if leases is None:
            self._stop.set()
        return leases or []

    def _renew(self) -> None:
        """On a thread of its own, so that a busy loop loses no lease."""
        while not self._stop.wait(_RENEW_SECONDS):
            try:
                held, is_over = self._call("renew")
            except StoreError:
                continue
            except LinkLost:
                held, is_over = set(), True
            if is_over:
                self.stop()
                return
            for key, attempt in tuple(self._running.items()):
                if key not in held and attempt.is_leased:
                    attempt.cancel("another worker has this task now")

    async def _one(self, lease: Lease) -> None:
        attempt = Attempt(self._parts, Journal(lease, self._call))
        key = (lease.task, lease.attempt)
        self._running[key], self._leases[attempt.session] = attempt, key
        try:
            ended = await attempt.run()
            if attempt.is_cancelled:
                with contextlib.suppress(HandrailError):
                    await asyncio.to_thread(self._call, "release", *key)
                return
            attempt.is_leased = False  # it may be gone from the ledger's list before the answer is here
            with contextlib.suppress(Fenced, LinkLost):
                is_taken = await asyncio.to_thread(attempt.journal.record, "finish", *ended)
                if not ended.is_failure:
                    await asyncio.to_thread(attempt.drop_folder)
                if not is_taken:
                    await asyncio.to_thread(attempt.drop_artifacts)
        finally:
            del self._running[key]
            self._leases.pop(attempt.session, None)


def work(address: Address, name: str, *, is_apart: bool) -> None:
    """Be a worker until the driver says stop or is gone. `is_apart`: this machine has no home of the user's, so that the
    configuration is the driver's and the state is in a temporary folder."""
    link = Link(address, name)
    with contextlib.ExitStack() as closing:
        closing.callback(link.close)
        setup = link.call("setup")
        os.environ.update(setup["variables"] if is_apart else {})
        folder = tempfile.mkdtemp(prefix=".worker-", dir=work_folder(setup["run"]))
        closing.callback(shutil.rmtree, folder, ignore_errors=True)
        app = closing.enter_context(Handrail(setup["config"], home=folder) if is_apart else Handrail())
        # Nobody may undo what a killed worker was at, as after any other crash: other sessions work in the same places.
        app.__dict__["effects"] = Calls(Path(folder), app.environments, lambda: app.config)
        app.runtime.path.isolates = True  # one task's tool ends no other's session
        leases: dict[str, tuple[str, int]] = {}
        if setup["asks"]:
            app.gate.__dict__["store"] = RemoteApprovals(link.call, leases)
            app.runtime.approver = QueueApprover()
        else:
            leave_unattended(app)
        app.runtime.person = None
        if app.config.telemetry.enabled:
            closing.callback(start_exporting())
        artifacts = Artifacts(setup["artifacts"]) if setup["artifacts"] else None
        # The models for a name, empty for the configured one. They are made once.
        models = cache(lambda name: build(app.config.model, name=name or None, providers=known_providers(app.plugins)))
        parts = Parts(app, setup["run"], models, command_reward, artifacts=artifacts)
        worker = Worker(parts, link.call, setup["sessions"], leases)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, lambda *_: worker.stop())
        asyncio.run(worker.run())
        with contextlib.suppress(OSError):
            work_folder(setup["run"]).rmdir()  # it stays as long as something is in it


def leave_unattended(app: Handrail) -> None:
    app.runtime.approver = app.runtime.person = None
    app.gate.settings.leave_unattended()


def main() -> None:
    """A worker of the engine `local`. What it has to know comes on stdin, where no other process sees it."""
    given = json.loads(sys.stdin.readline())
    with contextlib.suppress(LinkLost):
        work(Address(given["host"], given["port"], bytes.fromhex(given["key"])), given["name"], is_apart=False)


class RemoteApprovals:
    """Takes the place of an `ApprovalStore`. Answers are found by the gate's poll, as those of any other process are."""

    def __init__(self, call: Call, leases: Leases) -> None:
        self._call, self._leases = call, leases
        self._asked: dict[str, tuple[str, int]] = {}
        self.grants = _Part(call, "grants")
        self.decisions = _Part(call, "decisions")
        self.database = self

    def ask(self, request: ApprovalRequest, *, fingerprint: str, unless: Sequence[str] = ()) -> StoredRequest:
        if unless and self.grants.of(unless):
            raise Granted
        lease = self._leases.get(request.session_id or "", ("", 0))
        stored: StoredRequest = self._call("ask", request, fingerprint, *lease)
        self._asked[stored.request.id] = lease
        return stored

    def claim(self, request_id: str) -> Answer | None:
        answer: Answer | None = self._call("settle", request_id, "claim", *self._asked.get(request_id, ("", 0)))
        return answer

    def withdraw(self, request_id: str, *, state: State = State.WITHDRAWN) -> bool:
        lease = self._asked.get(request_id, ("", 0))
        return bool(self._call("settle", request_id, "withdraw", *lease, state))

    def version_of_data(self) -> int:
        return int(self._call("approvals_version"))

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
        return getattr(_Part(self._call, ""), name)


class _Part:
    def __init__(self, call: Call, name: str) -> None:
        self._call, self._name = call, name

    def __getattr__(self, method: str) -> Any:
        return lambda *arguments, **named: self._call("approvals", self._name, method, arguments, named)

"""What the workers of a batch may ask of its driver: leases, the journal, questions, results. Every method is one request.
Requests come over a socket, with a key that both sides know. Values cross it as pickles, which is safe only after both have
proved that they have the key."""

import contextlib
import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Client, Connection, Listener, answer_challenge, deliver_challenge
from multiprocessing.context import AuthenticationError
from pathlib import Path
from typing import Any, NamedTuple, cast

from ..base.workers import pool
from ..errors import HandrailError, StoreError
from ..protocols import ApprovalRequest
from ..store.approvals import ApprovalStore, StoredRequest
from ..store.ledger import Lease, SqlLedger
from ..types import JsonDict
from .folder import Options

log = logging.getLogger(__name__)
TRAJECTORIES = "trajectories.jsonl"
# Requests that the ledger answers, and those that are about the worker itself.
_OF_LEDGER = frozenset({"begin", "end", "keep_reply"})
_OF_WORKER = frozenset({"lease", "renew", "finish", "release", "ask"})
_APPROVALS = frozenset({"answer", "answered_among", "get", "pending"})
_GRANTS = frozenset({"add", "of", "use", "forget"})
Handle = Callable[[str, str, tuple[Any, ...]], Any]
# What a worker needs of its driver: it takes a method's name and its arguments.
Call = Callable[..., Any]


class Host:
    """The leases are kept here, by the clock that no one sets; who does not renew in time has lost its tasks."""

    def __init__(
        self, ledger: SqlLedger, options: Options, *, out: Path, approvals: ApprovalStore | None, setup: JsonDict
    ) -> None:
        self._ledger, self._options, self._out, self._approvals, self._setup = ledger, options, out, approvals, setup
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
                self._ledger.give_back(worker, why, self._options.attempts)
                self._until.pop(worker, None)

    def do_setup(self) -> JsonDict:
        """What each worker is told when it begins."""
        options = self._options
        return {**self._setup, "run": options.run, "sessions": options.sessions, "artifacts": options.artifacts}

    def do_lease(self, worker: str, count: int) -> list[Lease] | None:
        """None: there is nothing left to do, now or later."""
        if self.is_stopping:
            return None
        if leases := self._ledger.lease(worker, count):
            self._until[worker] = time.monotonic() + self._options.lease_seconds
        return leases

    def do_renew(self, worker: str) -> tuple[set[tuple[str, int]], bool]:
        """What the worker still has, and whether to stop."""
        if self._until.get(worker):  # first, as a ledger that cannot be used now is no fault of the worker
            self._until[worker] = time.monotonic() + self._options.lease_seconds
        return self._ledger.held(worker), self.is_stopping

    def do_finish(
        self, worker: str, task: str, attempt: int, result: JsonDict, trajectory: JsonDict | None, is_failure: bool
    ) -> bool:
        """False for an attempt that has lost its task: its result is refused."""
        result = {**result, "attempt": attempt, "worker": worker}
        if is_failure:
            return self._ledger.fail(task, attempt, result, self._options.attempts)
        with self._lock:
            if (task, attempt) not in self._ledger.held(worker):
                return False
            if trajectory is not None:  # a line that the ledger does not know is dropped by the next resume
                self._write({"id": task, "attempt": attempt, **result, **trajectory})
            return self._ledger.finish(task, attempt, result)

    def _write(self, line: JsonDict) -> None:
        data, place = json.dumps(line, ensure_ascii=False).encode() + b"\n", self._out / TRAJECTORIES
        with open(place, "ab", buffering=0, opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            start = file.tell()
            try:
                if file.write(data) == len(data):
                    return
            except OSError as error:
                log.warning("%s cannot be written: %s", file.name, error.strerror)
            file.truncate(start)
        raise StoreError(f"{place} cannot be written: the disk is full; make room on its disk")

    def do_release(self, worker: str, task: str, attempt: int) -> None:
        """The worker gives a task back because it ends."""
        if (task, attempt) in self._ledger.held(worker):
            self._ledger.fail(task, attempt, {"error": "stopped"}, 0)

    def do_ask(self, worker: str, request: ApprovalRequest, fingerprint: str, task: str, attempt: int) -> StoredRequest:
        owner = f"batch-{self._options.run}-{task}#{attempt}" if task else worker
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


class Address(NamedTuple):
    """Where the driver listens, with the key that lets workers in."""

    host: str
    port: int
    key: bytes


class LinkLost(HandrailError):
    """The driver is gone, or cannot be reached."""


class Server:
    """Calls `handle(worker, method, arguments)` for what workers ask, and `lost(worker)` when a connection ends. Each
    connection has a thread."""

    def __init__(self, host: str, handle: Handle, lost: Callable[[str], object]) -> None:
        self._handle, self._lost = handle, lost
        self._listener = Listener((host, 0), "AF_INET", backlog=128)
        self._open: set[Connection] = set()
        self._closed = threading.Event()
        name, port = cast("tuple[str, int]", self._listener.address)
        self.address = Address(name, port, os.urandom(32))
        self._thread = threading.Thread(target=self._accept, name="handrail-batch-link", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        with contextlib.suppress(OSError), socket.create_connection(self.address[:2], timeout=5):
            pass  # wakes the thread that accepts
        self._thread.join()
        self._listener.close()
        for connection in tuple(self._open):
            _shut(connection)

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                connection = self._listener.accept()
            except OSError:
                continue
            if self._closed.is_set():
                connection.close()
                return
            pool.submit(lambda each=connection: self._serve(each))

    def _serve(self, connection: Connection) -> None:
        worker = ""
        self._open.add(connection)
        try:
            deliver_challenge(connection, self.address.key)
            answer_challenge(connection, self.address.key)
            _send_at_once(connection)
            worker = str(connection.recv())
            while True:
                method, arguments = connection.recv()
                connection.send(self._answered(worker, method, arguments))
        except (EOFError, OSError, AuthenticationError):
            pass
        finally:
            self._open.discard(connection)
            connection.close()
            if worker and not self._closed.is_set():
                self._lost(worker)

    def _answered(self, worker: str, method: str, arguments: tuple[Any, ...]) -> tuple[bool, Any]:
        try:
            return True, self._handle(worker, method, arguments)
        except HandrailError as error:
            return False, error
        except Exception as error:
            log.exception("the driver failed to %s for %s", method, worker)
            return False, HandrailError(f"{method} failed: {type(error).__name__}: {error}")


class Link:
    """A worker's side. One call at a time, from any thread."""

    def __init__(self, address: Address, worker: str) -> None:
        self._lock = threading.Lock()
        try:
            self._connection = Client(address[:2], "AF_INET", authkey=address.key)
            _send_at_once(self._connection)
            self._connection.send(worker)
        except (OSError, EOFError, AuthenticationError) as error:
            raise LinkLost(f"the driver at {address.host} cannot be reached: {error}") from None

    def call(self, method: str, *arguments: Any) -> Any:
        """What the driver's method returns or raises. Raises LinkLost."""
        try:
            with self._lock:
                self._connection.send((method, arguments))
                is_value, value = self._connection.recv()
        except (OSError, EOFError) as error:
            raise LinkLost(f"the driver is gone: {type(error).__name__}") from None
        if is_value:
            return value
        raise value

    def close(self) -> None:
        _shut(self._connection)


def _send_at_once(connection: Connection) -> None:
    """A long message is two writes, and the second would wait for the other side to have acknowledged the first."""
    with socket.socket(fileno=os.dup(connection.fileno())) as same:
        same.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _shut(connection: Connection) -> None:
    """Ends it also for a thread that waits for it, which then closes it."""
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as same:
        same.shutdown(socket.SHUT_RDWR)

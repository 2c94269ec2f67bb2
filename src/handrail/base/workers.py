"""Run blocking work on threads that can be waited for with a timeout, and abandoned when they do not end.

The standard pool joins its threads when Python exits, so one handler that never returns would block the whole program.
Beside that: run a coroutine from sync code, wherever that runs, and tell what kind of interruption an exception is. asyncio is a
third of what a start imports, so it is loaded when there is something to await.
"""

from __future__ import annotations

import contextvars
import functools
import os
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from types import ModuleType
from typing import Any, TypeVar

from ..errors import CallTimeout
from ..types import CancelToken

T = TypeVar("T")

IDLE_SECONDS = 5.0
# More than a year; the timers below cannot count much further.
MAX_SECONDS = 50_000_000.0

Job = tuple[contextvars.Context, Callable[..., Any], tuple[Any, ...], "Future[Any]"]


class WorkerPool:
    """Daemon threads, made when none is idle and ended when idle for a while. The submitter sets the limits."""

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        self.idle_seconds = idle_seconds
        self._idle: list[_Worker] = []
        self._lock = threading.Lock()
        self._process = os.getpid()

    def submit(self, function: Callable[..., T], *args: Any) -> Future[T]:
        """Start the work in a copy of the caller's context."""
        future: Future[T] = Future()
        job: Job = (contextvars.copy_context(), function, args, future)
        if self._process != os.getpid():  # after a fork the threads are the parent's
            self._idle, self._lock, self._process = [], threading.Lock(), os.getpid()
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        if worker is None:
            worker = _Worker(self, job)
            threading.Thread(target=worker.work, name="handrail-worker", daemon=True).start()
        else:
            worker.give(job)
        return future

    def rejoin(self, worker: _Worker) -> None:
        with self._lock:
            self._idle.append(worker)

    def leave(self, worker: _Worker) -> bool:
        """Whether the idle worker may end; False when a job has just been given to it."""
        with self._lock:
            if worker in self._idle:
                self._idle.remove(worker)
                return True
            return False


class _Worker:
    __slots__ = ("_job", "_pool", "_wake")

    def __init__(self, pool: WorkerPool, job: Job) -> None:
        self._pool = pool
        self._wake = threading.Lock()
        self._wake.acquire()
        self._job: Job | None = job

    def give(self, job: Job) -> None:
        self._job = job
        self._wake.release()

    def work(self) -> None:
        while True:
            job, self._job = self._job, None
            if job is not None:
                _run(*job)
            del job  # a waiting thread must not keep the last call's arguments alive
            self._pool.rejoin(self)
            if not self._wake.acquire(timeout=self._pool.idle_seconds):
                if self._pool.leave(self):
                    return
                self._wake.acquire()  # just taken from the idle list: its job follows


def _run(
    context: contextvars.Context, function: Callable[..., Any], args: tuple[Any, ...], future: Future[Any]
) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        value = context.run(function, *args)
    except BaseException as error:  # noqa: BLE001  carried over to whoever waits
        future.set_exception(error)
    else:
        future.set_result(value)


class Lane:
    """Runs work on threads of a pool, in the order in which it came, and never more than `width` at once."""

    def __init__(self, pool: WorkerPool, width: int) -> None:
        self._pool, self._width = pool, width
        self._start_over()

    def _start_over(self) -> None:
        self._jobs: deque[Job] = deque()
        self._lock, self._busy, self._process = threading.Lock(), 0, os.getpid()

    def submit(self, function: Callable[..., T], *args: Any) -> Future[T]:
        """Start the work, or queue it, in a copy of the caller's context."""
        future: Future[T] = Future()
        if self._process != os.getpid():  # after a fork the threads are the parent's
            self._start_over()
        with self._lock:
            self._jobs.append((contextvars.copy_context(), function, args, future))
            is_full = self._busy >= self._width
            self._busy += not is_full
        if not is_full:
            self._pool.submit(self._work)
        return future

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._jobs:
                    self._busy -= 1
                    return
                job = self._jobs.popleft()
            _run(*job)
            del job


pool = WorkerPool()
# For work that waits for the lock of a database: more threads would only wait beside each other.
database_lane = Lane(pool, 4)


def run_bounded(
    function: Callable[..., T],
    *args: Any,
    timeout: float | None = None,
    cancel: CancelToken | None = None,
    grace: float = 0,
) -> T:
    """Run on a worker and wait, for `timeout` seconds at most or until cancelled. The work itself may continue. `grace`:
    seconds that cancelled work may take to end by itself, with what it has so far."""
    future = pool.submit(function, *args)
    over = threading.Event()
    future.add_done_callback(lambda _: over.set())
    forget = cancel.on_cancel(over.set) if cancel is not None else None
    try:
        over.wait(None if timeout is None else min(timeout, MAX_SECONDS))
    finally:
        if forget is not None:
            forget()
    cancelled = cancel is not None and cancel.cancelled
    if future.done() or (cancelled and grace and wait([future], grace).done):
        return future.result()
    if cancel is not None and cancelled:
        raise cancel.error()
    raise CallTimeout(f"did not end within {timeout:g} s")


class Turns:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Future[None]] = deque()

    def take(self) -> Future[None]:
        """A future that is done when it is the caller's turn. Call `leave` for each, also one that never came."""
        turn: Future[None] = Future()
        with self._lock:
            self._waiting.append(turn)
            is_first = len(self._waiting) == 1
        if is_first:
            _begin(turn)
        return turn

    def leave(self, turn: Future[None]) -> None:
        with self._lock:
            was_first = bool(self._waiting) and self._waiting[0] is turn
            self._waiting.remove(turn)
            following = self._waiting[0] if was_first and self._waiting else None
        if following is not None:
            _begin(following)


def _begin(turn: Future[None]) -> None:
    if turn.set_running_or_notify_cancel():
        turn.set_result(None)


def run_async(awaitable: Awaitable[T], *, timeout: float | None = None, cancel: CancelToken | None = None) -> T:
    """Run to the end and return the result. After `timeout` seconds, or when cancelled, the coroutine is cancelled and
    CallTimeout or CallCancelled is raised."""
    result: T = _loops().run(awaitable, timeout=timeout, cancel=cancel)
    return result


@functools.cache
def _loops() -> ModuleType:
    from . import loops  # loads asyncio

    return loops


def is_cancellation(error: BaseException) -> bool:
    """Whether it is asyncio's CancelledError."""
    known = sys.modules.get("asyncio.exceptions")
    return known is not None and isinstance(error, getattr(known, "CancelledError", ()))


def is_being_ended(error: BaseException) -> bool:
    """Whether it comes from outside: the running task is being cancelled, or its coroutine closed. A CancelledError or a
    GeneratorExit that the code raised itself is just an exception."""
    if not is_cancellation(error) and not isinstance(error, GeneratorExit):
        return False
    import asyncio

    if isinstance(error, GeneratorExit):
        return asyncio._get_running_loop() is None
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def is_interrupt(error: BaseException) -> bool:
    """Whether it comes from the signal: Python raises it between any two instructions of the main thread, or in a handler of
    the signal. A `raise` statement elsewhere is the code's own doing."""
    if not isinstance(error, KeyboardInterrupt) or threading.current_thread() is not threading.main_thread():
        return False
    import signal  # few programs ever come here
    from opcode import opmap

    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return True
    code, handler = trace.tb_frame.f_code, signal.getsignal(signal.SIGINT)
    handler = getattr(handler, "func", handler)  # asyncio's is a partial
    is_handler = code is getattr(handler, "__code__", None) or code.co_filename.endswith("asyncio/runners.py")
    return is_handler or code.co_code[trace.tb_lasti] != opmap["RAISE_VARARGS"]

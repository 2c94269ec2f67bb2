"""Wait for calls so that Ctrl-C and a time limit can end them, whatever they do."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from enum import Enum, auto
from typing import Generic, NamedTuple, TypeVar

from ..base.workers import pool
from ..types import CancelToken

T = TypeVar("T")

# What a cancelled call may take to clean up before we go without it.
GRACE_SECONDS = 5.0
_POLL_SECONDS = 0.25


class Ending(Enum):
    """Why the wait was over."""

    DONE = auto()
    TIMED_OUT = auto()
    INTERRUPTED = auto()


class Supervised(NamedTuple, Generic[T]):
    """What the work gave back, if it came to that, and what ended the wait for it."""

    value: T | None
    ending: Ending


def supervise(work: Callable[[CancelToken], T], *, timeout: float | None = None) -> Supervised[T]:
    """Run `work` on another thread; it is told to stop by its token. A second Ctrl-C does not wait for it any more.

    This thread only waits, so that it hears the signal even if a tool blocks whatever it runs in.
    """
    cancel = CancelToken()
    outcome: Future[T] = Future()  # here before the work is, so that Ctrl-C in between loses nothing

    def run() -> None:
        try:
            outcome.set_result(work(cancel))
        except BaseException as error:  # noqa: BLE001  carried over to the thread that waits
            outcome.set_exception(error)

    try:
        pool.submit(run)
        if _wait_for(outcome, timeout):
            return Supervised(outcome.result(), Ending.DONE)
        ending, reason = Ending.TIMED_OUT, f"its {timeout:g} s are over"
    except KeyboardInterrupt:
        ending, reason = Ending.INTERRUPTED, "interrupted by Ctrl-C"
    cancel.cancel(reason)
    return Supervised(_value_of(outcome), ending)


def _wait_for(future: Future[T], timeout: float | None) -> bool:
    """Whether it is done in time. A Ctrl-C that comes just before a wait begins is heard only when the wait ends: so none
    is long."""
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        left = _POLL_SECONDS if end is None else min(_POLL_SECONDS, end - time.monotonic())
        done, _ = wait([future], max(0.0, left))
        if done or (end is not None and time.monotonic() >= end):
            return bool(done)


def _value_of(future: Future[T]) -> T | None:
    done, _ = wait([future], GRACE_SECONDS)
    return future.result() if done else None

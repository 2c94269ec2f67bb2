"""Wait for calls so that Ctrl-C and a time limit can end them, whatever they do."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from enum import Enum, auto
from typing import Generic, NamedTuple, TypeVar

from ..types import CancelToken
from ..workers import pool

T = TypeVar("T")

# What a cancelled call may take to clean up before we go without it.
GRACE_SECONDS = 5.0


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
        done, _ = wait([outcome], timeout)
        if done:
            return Supervised(outcome.result(), Ending.DONE)
        ending, reason = Ending.TIMED_OUT, f"its {timeout:g} s are over"
    except KeyboardInterrupt:
        ending, reason = Ending.INTERRUPTED, "interrupted by Ctrl-C"
    cancel.cancel(reason)
    return Supervised(_value_of(outcome), ending)


def _value_of(future: Future[T]) -> T | None:
    done, _ = wait([future], GRACE_SECONDS)
    return future.result() if done else None

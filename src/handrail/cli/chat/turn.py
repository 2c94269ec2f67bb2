"""Run something in another thread while this one keeps the screen alive and receives Ctrl-C.

The first Ctrl-C stops what runs; the second leaves without waiting for it. The end of the terminal (SIGHUP, SIGTERM)
stops it and leaves once what was done is stored.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from types import FrameType
from typing import TypeVar

from ...base.workers import pool
from ..runtime import handling
from .screen import keyboard

T = TypeVar("T")
Act = Callable[[], object]
FRAME_SECONDS = 0.1
_LAST_SECONDS = 10.0  # nobody waits at a terminal that is gone
_LEAVE_SECONDS = 30.0  # longer than closing everything takes


class Leave(SystemExit):
    """The user leaves the chat. `code` is the exit code.

    A SystemExit, because an event loop swallows anything else that a signal handler raises during a callback.
    """

    code: int

    def __init__(self, code: int = 0) -> None:
        super().__init__(code)


def run(work: Callable[[], T], *, stop: Act, draw: Act, suspend: Act, read_keys: Act | None = None) -> T:
    """Returns what `work` returns. Calls `stop` at the first Ctrl-C, `draw` ten times per second. Raises Leave at the second.

    `suspend` is called for Ctrl-Z, and returns when the user comes back.
    `read_keys`, if given, waits for typed keys between two drawings, for at most a moment.
    """
    changed, pressed = threading.Event(), 0
    with signals(signal.SIGTSTP) as received, keyboard(shown=False):
        future = pool.submit(work)
        future.add_done_callback(lambda _: changed.set())
        received.listener = changed.set
        while not future.done():
            draw()
            if read_keys is None:
                changed.wait(FRAME_SECONDS)
                changed.clear()
            else:
                read_keys()
            if received.suspends:
                received.suspends = False
                suspend()
            if received.end:
                stop()
                wait([future], _LAST_SECONDS)
                break
            if received.interrupts > pressed:
                stop()
                if pressed:
                    raise Leave(128 + signal.SIGINT)
                pressed = 1
        if received.end:
            raise Leave(128 + received.end)
        return future.result()


class Received:
    """The signals that came. `listener` is called for each, wherever this thread happens to be."""

    interrupts = end = 0
    suspends = False
    listener: Act = staticmethod(lambda: None)


@contextlib.contextmanager
def signals(*more: int) -> Iterator[Received]:
    """Count those that end something, and `more`, instead of letting them raise: an event loop that is left by an exception at
    any moment can lose a step of a task, and then waits for that task forever."""
    received = Received()

    def note(number: int, _: FrameType | None) -> None:
        if isinstance(leaving := before.get(number), _Leaving):
            leaving.begin(number)
        if number == signal.SIGINT:
            received.interrupts += 1
        elif number == signal.SIGTSTP:
            received.suspends = True
        else:
            received.end = number
        received.listener()

    numbers = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, *more)
    before: dict[int, object] = {number: signal.getsignal(number) for number in numbers}
    with handling(note, *numbers):
        yield received


def leave_on_signals(last_step: Act) -> None:
    """Between turns the end of the terminal raises Leave immediately, and only once: what closes then is not interrupted.

    Should the process not end in half a minute all the same, it does `last_step` and exits.
    """
    leaving = _Leaving(last_step)
    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, leaving)


class _Leaving:
    def __init__(self, last_step: Act) -> None:
        self._last_step, self._has_begun = last_step, False

    def begin(self, number: int) -> None:
        if not self._has_begun:
            self._has_begun = True
            last_resort = threading.Timer(_LEAVE_SECONDS, self._exit, (128 + number,))
            last_resort.daemon = True
            last_resort.start()

    def _exit(self, code: int) -> None:
        try:
            self._last_step()
        finally:
            os._exit(code)

    def __call__(self, number: int, _: FrameType | None) -> None:
        if not self._has_begun:
            self.begin(number)
            raise Leave(128 + number)

"""Run something in another thread while this one keeps the screen alive and receives Ctrl-C.

The first Ctrl-C stops what runs; the second leaves without waiting for it. The end of the terminal (SIGHUP, SIGTERM)
stops it and leaves once what was done is stored.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from types import FrameType
from typing import TypeVar

from ...base.workers import pool
from .screen import keyboard

T = TypeVar("T")

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


def run(
    work: Callable[[], T],
    *,
    stop: Callable[[], object],
    draw: Callable[[], object],
    read_keys: Callable[[], object] | None = None,
) -> T:
    """Returns what `work` returns. Calls `stop` at the first Ctrl-C, `draw` ten times per second. Raises Leave at the second.

    `read_keys`, if given, waits for typed keys between two drawings, for at most a moment.
    """
    changed = threading.Event()
    pressed = 0
    with _signals() as received, keyboard(shown=False):
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
            if received.end:
                stop()
                wait([future], _LAST_SECONDS)
                raise Leave(128 + received.end)
            if received.interrupts > pressed:
                stop()
                if pressed:
                    raise Leave(128 + signal.SIGINT)
                pressed = 1
        return future.result()


class _Received:
    interrupts = end = 0
    listener: Callable[[], object] = staticmethod(lambda: None)

    def note(self, number: int, _: FrameType | None) -> None:
        if number == signal.SIGINT:
            self.interrupts += 1
        else:
            self.end = number
        self.listener()


@contextlib.contextmanager
def _signals() -> Iterator[_Received]:
    """Count signals instead of letting them raise wherever this thread happens to be."""
    received = _Received()
    numbers = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)
    before = {number: signal.signal(number, received.note) for number in numbers}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def leave_on_signals() -> None:
    """Between turns the end of the terminal raises Leave immediately. Whatever waits for a terminal that is gone, the process
    ends after a while."""

    def leave(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  a signal handler's signature
        last_resort = threading.Timer(_LEAVE_SECONDS, os._exit, (128 + number,))
        last_resort.daemon = True
        last_resort.start()
        raise Leave(128 + number)

    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, leave)

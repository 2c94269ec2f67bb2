"""Run something in another thread while this one keeps the screen alive and hears the person's Ctrl-C.

The first stops what runs, so that the person can speak; the second does not wait for it and leaves. The end of the terminal
(SIGHUP, SIGTERM) stops it and leaves when what was done is written down.
"""

from __future__ import annotations

import contextlib
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


class Leave(SystemExit):
    """The person has gone, or wants to. `code` is the exit code.

    An event loop lets nothing else through that a signal raises while it runs a callback: the chat would stay, unseen.
    """

    code: int

    def __init__(self, code: int = 0) -> None:
        super().__init__(code)


def run(
    work: Callable[[], T],
    *,
    stop: Callable[[], object],
    draw: Callable[[], object],
    hear: Callable[[], object] | None = None,
) -> T:
    """What `work` gives back. `stop` is called at the first Ctrl-C, `draw` ten times a second. Raises Leave at the second.

    `hear`, if there is one, waits for what the person types between two drawings, for a moment at most.
    """
    changed = threading.Event()
    pressed = 0
    with _signals() as heard, keyboard(shown=False):
        future = pool.submit(work)
        future.add_done_callback(lambda _: changed.set())
        heard.listener = changed.set
        while not future.done():
            draw()
            if hear is None:
                changed.wait(FRAME_SECONDS)
                changed.clear()
            else:
                hear()
            if heard.end:
                stop()
                wait([future], _LAST_SECONDS)
                raise Leave(128 + heard.end)
            if heard.interrupts > pressed:
                stop()
                if pressed:
                    raise Leave(128 + signal.SIGINT)
                pressed = 1
        return future.result()


class _Heard:
    def __init__(self) -> None:
        self.interrupts = 0
        self.end = 0
        self.listener: Callable[[], object] = lambda: None

    def interrupt(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002  a signal handler's signature
        self.interrupts += 1
        self.listener()

    def ended(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.end = number
        self.listener()


@contextlib.contextmanager
def _signals() -> Iterator[_Heard]:
    """Count signals instead of letting them raise wherever this thread happens to be."""
    heard = _Heard()
    handlers = {signal.SIGINT: heard.interrupt, signal.SIGHUP: heard.ended, signal.SIGTERM: heard.ended}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield heard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def leave_when_told() -> None:
    """Between turns the end of the terminal raises at once."""

    def leave(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  a signal handler's signature
        raise Leave(128 + number)

    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, leave)

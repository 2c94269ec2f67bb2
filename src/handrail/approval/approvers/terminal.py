"""Ask the user at the terminal.

They see what runs, with the dangerous parts marked, and what each answer would cover. Enter alone is not an answer, nor is
what was typed before the prompt appeared. One prompt is shown at a time; the others wait without a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import shutil
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple, TextIO

from ...base.turns import Turns
from ...base.workers import pool
from ...protocols import Answer, ApprovalRequest, Decision
from .prompt import ANSWERS, question

# Every prompt at the terminal takes a turn here, also that of a tool which asks for something else.
turns = Turns()

Hold = Callable[[], AbstractContextManager[object]]


class Tty(NamedTuple):
    """Where answers are read and questions written."""

    read: int
    write: TextIO


class TerminalApprover:
    """`hold` keeps other lines off the terminal while a prompt is shown; they follow after it."""

    name = "cli"

    def __init__(self, *, hold: Hold = contextlib.nullcontext) -> None:
        self._hold = hold

    async def decide(self, request: ApprovalRequest) -> Answer | None:
        """None when there is no terminal to ask at."""
        turn = turns.take()
        try:
            await asyncio.wrap_future(turn)
            return await self._ask(request)
        finally:
            turns.leave(turn)

    async def _ask(self, request: ApprovalRequest) -> Answer | None:
        # A thread waits for the input; a byte in this pipe wakes it when the answer is not needed any more.
        gone, wake = os.pipe()
        asking = pool.submit(self._at_terminal, request, gone)
        try:
            return await asyncio.shield(asyncio.wrap_future(asking))
        except asyncio.CancelledError:
            os.write(wake, b".")
            await asyncio.wait([asyncio.wrap_future(asking)])
            raise
        finally:
            os.close(gone)
            os.close(wake)

    def _at_terminal(self, request: ApprovalRequest, gone: int) -> Answer | None:
        with contextlib.ExitStack() as stack:
            tty = stack.enter_context(terminal())
            if tty is None:
                return None
            stack.enter_context(self._hold())
            decision = _converse(request, tty, gone)
        return None if decision is None else Answer(decision, self.name)


def is_there() -> bool:
    """Whether a terminal is there to ask at."""
    with terminal() as tty:
        return tty is not None


@contextlib.contextmanager
def terminal() -> Iterator[Tty | None]:
    """The terminal on stdin and stderr, or the one that this process belongs to when those lead elsewhere."""
    if sys.stdin is not None and sys.stderr is not None and os.isatty(0) and os.isatty(2):
        yield Tty(0, sys.stderr)
        return
    try:
        number = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    with open(number, "w", encoding="utf-8", errors="replace") as stream:
        in_foreground = False
        with contextlib.suppress(OSError):
            in_foreground = os.tcgetpgrp(number) == os.getpgrp()
        # A job in the background would be stopped by reading.
        yield Tty(number, stream) if in_foreground else None


def _converse(request: ApprovalRequest, tty: Tty, gone: int) -> Decision | None:
    painted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    width = min(shutil.get_terminal_size().columns, 100)
    _write(tty, question(request, width=width, painted=painted))
    # What was typed or pasted before the prompt appeared was meant for something else.
    with contextlib.suppress(termios.error):
        termios.tcflush(tty.read, termios.TCIFLUSH)
    offered = [decision.value for decision in request.offers]
    while True:
        _write(tty, f"  {', '.join(offered)}? ")
        line = _line(tty.read, gone, request.expires_at)
        if line is None:
            _write(
                tty,
                "\n  No answer is needed any more.\n"
                if time.time() < request.expires_at
                else "\n  Timed out: denied.\n",
            )
            return None
        if line == "":  # the end of input, Ctrl-D
            _write(tty, "\n  Denied.\n")
            return Decision.DENY
        decision = ANSWERS.get(line.strip().lower())
        if decision in request.offers and decision is not None:
            _write(tty, f"  {'Denied.' if decision is Decision.DENY else 'Allowed: ' + decision.value + '.'}\n")
            return decision
        _write(tty, "  Type one of these words, or its first letter; Enter alone is not an answer.\n")


def _line(number: int, gone: int, expires_at: float) -> str | None:
    """The line that was typed; "" at the end of input; None when it is not needed any more."""
    line = b""
    while not line.endswith(b"\n"):
        left = max(0.0, expires_at - time.time())
        ready, _, _ = select.select([number, gone], [], [], left)
        if not ready or gone in ready:
            return None
        try:
            piece = os.read(number, 4096)
        except OSError:  # the terminal went away
            return ""
        if not piece:
            return ""
        line += piece
    return line.decode("utf-8", "replace")


def _write(tty: Tty, text: str) -> None:
    with contextlib.suppress(OSError):
        tty.write.write(text)
        tty.write.flush()

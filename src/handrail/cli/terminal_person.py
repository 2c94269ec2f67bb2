"""Ask the person at the terminal."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .output import colours, notes_held, paint, visible

if TYPE_CHECKING:
    from ..approval.approvers.terminal import Hold


class TerminalPerson:
    """Questions on stderr, answers from stdin. An empty line asks again; the end of input (Ctrl-D) is no answer.

    `hold` keeps other lines away while a question stands there. `interrupt` ends the question without an answer, so that
    nobody reads any more what is typed for something else.
    """

    def __init__(self, hold: Hold = notes_held) -> None:
        self._hold = hold
        self._lock = threading.Lock()
        self._wake = -1  # where a byte ends the question that stands there

    def interrupt(self) -> None:
        with self._lock:
            if self._wake >= 0:
                os.write(self._wake, b".")

    def ask(self, question: str, choices: Sequence[str]) -> str | None:
        from ..approval.approvers.terminal import turns

        turn = turns.take()  # one question at a time, whoever asks
        try:
            turn.result()
            with self._hold(), self._interruptible() as gone:
                return self._asked(question, choices, gone)
        finally:
            turns.leave(turn)

    @contextlib.contextmanager
    def _interruptible(self) -> Iterator[int]:
        gone, wake = os.pipe()
        with self._lock:
            self._wake = wake
        try:
            yield gone
        finally:
            with self._lock:
                self._wake = -1
            os.close(gone)
            os.close(wake)

    def _asked(self, question: str, choices: Sequence[str], gone: int) -> str | None:
        from ..platforms.remote_user import chosen

        painted = colours(sys.stderr)
        sys.stderr.write(paint(f"? {visible(question)}", "bold", on=painted) + "\n")
        for number, choice in enumerate(choices, 1):
            sys.stderr.write(f"  {paint(str(number), 'cyan', on=painted)}  {visible(choice)}\n")
        hint = f"1-{len(choices)}, or your own words" if choices else "your answer"
        while True:
            sys.stderr.write(paint(f"  {hint}: ", "dim", on=painted))
            sys.stderr.flush()
            line = _read_line(gone)
            if line is None:
                sys.stderr.write("\n")
                return None
            if line.strip():
                return chosen(line, choices)


def _read_line(gone: int) -> str | None:
    # Not `input()`: a call that is cancelled leaves its thread here, and one that waits inside of Python's buffered
    # reader holds a lock that the interpreter needs to end.
    line = b""
    while not line.endswith(b"\n"):
        if gone in select.select([0, gone], [], [])[0]:
            return None
        piece = os.read(0, 4096)
        if not piece:
            break
        line += piece
    return line.decode("utf-8", "replace") if line else None

"""Ask the person at the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .output import colours, notes_held, paint, visible

if TYPE_CHECKING:
    from ..tools.approval.approvers.terminal import Hold


class TerminalPerson:
    """Questions on stderr, answers from stdin. An empty line asks again; the end of input (Ctrl-D) is no answer.

    `hold` keeps other lines away while a question stands there.
    """

    def __init__(self, hold: Hold = notes_held) -> None:
        self._hold = hold

    def ask(self, question: str, choices: Sequence[str]) -> str | None:
        from ..tools.approval.approvers.terminal import turns

        turn = turns.take()  # one question at a time, whoever asks
        try:
            turn.result()
            with self._hold():
                return self._asked(question, choices)
        finally:
            turns.leave(turn)

    def _asked(self, question: str, choices: Sequence[str]) -> str | None:
        from ..tools.messages.person import chosen

        painted = colours(sys.stderr)
        sys.stderr.write(paint(f"? {visible(question)}", "bold", on=painted) + "\n")
        for number, choice in enumerate(choices, 1):
            sys.stderr.write(f"  {paint(str(number), 'cyan', on=painted)}  {visible(choice)}\n")
        hint = f"1-{len(choices)}, or your own words" if choices else "your answer"
        while True:
            sys.stderr.write(paint(f"  {hint}: ", "dim", on=painted))
            sys.stderr.flush()
            line = _read_line()
            if line is None:
                sys.stderr.write("\n")
                return None
            if line.strip():
                return chosen(line, choices)


def _read_line() -> str | None:
    # Not `input()`: a call that is cancelled leaves its thread here, and one that waits inside of Python's buffered
    # reader holds a lock that the interpreter needs to end.
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(0, 4096)
        if not piece:
            break
        line += piece
    return line.decode("utf-8", "replace") if line else None

"""Input from a terminal that cannot move its cursor: lines, as the terminal itself edits them."""

from __future__ import annotations

import sys

from .screen import Screen


class PlainInput:
    """Reads as `Input` does. A backslash at the end of a line begins another one."""

    is_empty = True

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def read(self, prompt: str, *, text: str = "") -> str:
        if text:
            self._screen.write(f"(was: {text})\n")
        self._screen.write(prompt)
        lines = [_line()]
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            lines.append(_line())
        return "\n".join(lines)

    def remember(self, line: str) -> None:
        """There is no history."""


def _line() -> str:
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")

"""The answer while it is written: each complete part is printed, the rest is shown below as plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from ..output import visible

# A part that never ends (one list, one file, one line) is set in pieces of so many lines, or characters.
_MAX_LINES = 200
_MAX_CHARS = 4_000
_FENCES = ("```", "~~~")


class Answer:
    """Takes text in any pieces. `done` gets each complete part, as Markdown."""

    def __init__(self, done: Callable[[str], object]) -> None:
        self._done = done
        self._lines: list[str] = []
        self._begun = ""  # a line that has not ended
        self._fence = ""  # the line that opened the code that we are in

    def add(self, text: str) -> None:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._add_line(line)
        if len(self._begun) > _MAX_CHARS:
            self._add_line(self._begun)
            self._flush()
            self._begun = ""

    def finish(self) -> None:
        """No more will come of it."""
        if self._begun:
            self._add_line(self._begun)
        self._flush()
        self._lines, self._begun, self._fence = [], "", ""

    def tail(self, width: int, most: int) -> list[str]:
        """The last lines of what is not set yet, wrapped."""
        kept = [*self._lines, self._begun][-most:]
        wrapped = [row for line in kept for row in textwrap.wrap(visible(line), width) or [""]]
        while wrapped and not wrapped[0]:
            wrapped.pop(0)
        return wrapped[-most:]

    def _add_line(self, line: str) -> None:
        stripped = line.strip()
        mark = self._fence.strip()[:3]
        if mark:
            if stripped.startswith(mark) and not stripped.strip(mark[0]):
                self._fence = ""
        elif stripped.startswith(_FENCES):
            self._fence = line
        elif not stripped:
            self._flush()
            return
        self._lines.append(line)
        if len(self._lines) >= _MAX_LINES:
            self._flush()

    def _flush(self) -> None:
        lines, self._lines = self._lines, []
        if self._fence:  # code that goes on in the next part
            lines.append(self._fence.strip()[:3])
            self._lines = [self._fence]
        if any(line.strip() for line in lines):
            self._done("\n".join(lines))

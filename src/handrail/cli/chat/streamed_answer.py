"""The reasoning and the answer while they are written: complete parts are printed, the rest is shown below as plain text."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable

from ..call_text import shortened
from ..output import visible
from .calls import seconds

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


_LIVE_LINES = 3
_KEPT_CHARS = 240
_MAX_THOUGHT_CHARS = 20_000  # of which the end is looked at


class Thought:
    """Takes text in any pieces. It is not part of the answer, and not stored."""

    def __init__(self) -> None:
        self._beginning, self._end = "", ""
        self._since = 0.0

    def add(self, text: str) -> None:
        self._since = self._since or time.monotonic()
        if len(self._beginning) <= _KEPT_CHARS:
            self._beginning += text[:_MAX_THOUGHT_CHARS]
        self._end = (self._end + text)[-_MAX_THOUGHT_CHARS:]

    def tail(self, width: int) -> list[str]:
        """Its last lines."""
        kept = self._end.splitlines()[-_LIVE_LINES:]
        return [row for line in kept for row in textwrap.wrap(visible(line), width)][-_LIVE_LINES:]

    def finish(self) -> str:
        """What stays of it; empty when there was none."""
        text, began = " ".join(self._beginning.split()), self._since
        self._beginning, self._end, self._since = "", "", 0.0
        return f"Thought for {seconds(time.monotonic() - began)}: {shortened(text, _KEPT_CHARS)}" if text else ""

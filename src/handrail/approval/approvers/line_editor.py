"""Edit a text on one row of a terminal: the usual keys, without a library."""

from __future__ import annotations

import re

from ..display import columns

KEY = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO.|\x1b|.", re.DOTALL)
_MOVES = {
    **dict.fromkeys(("\x1b[D", "\x1bOD", "\x02"), -1),
    **dict.fromkeys(("\x1b[C", "\x1bOC", "\x06"), 1),
    **dict.fromkeys(("\x1b[H", "\x1bOH", "\x1b[1~", "\x01"), -(10**9)),
    **dict.fromkeys(("\x1b[F", "\x1bOF", "\x1b[4~", "\x05"), 10**9),
}


class Line:
    """A text and the place of the cursor in it. Enter ends it; Esc ends it and empties it. A pasted line end is kept."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, len(text)
        self.is_done = False

    def feed(self, typed: str) -> None:
        if typed.endswith(("\n", "\r")):
            self.is_done, typed = True, typed[:-1]
        for key in KEY.findall(typed):
            self._press(key)

    def _press(self, key: str) -> None:
        if key == "\x1b":
            self.text, self.at, self.is_done = "", 0, True
        elif key in _MOVES:
            self.at = min(max(0, self.at + _MOVES[key]), len(self.text))
        elif key in ("\x7f", "\x08"):
            self._cut(self.at - 1, self.at)
        elif key in ("\x1b[3~", "\x04"):
            self._cut(self.at, self.at + 1)
        elif key == "\x15":
            self._cut(0, self.at)
        elif key == "\x0b":
            self._cut(self.at, len(self.text))
        elif key == "\x17":
            self._cut(len(re.sub(r"\S*\s*\Z", "", self.text[: self.at])), self.at)
        elif key == "\n" or key.isprintable():
            self.text = self.text[: self.at] + key + self.text[self.at :]
            self.at += 1

    def _cut(self, start: int, end: int) -> None:
        start = max(0, start)
        self.text, self.at = self.text[:start] + self.text[end:], start

    def drawn(self, width: int) -> str:
        """The row, scrolled so that the cursor is in it, and the cursor there. One sign stands for what cannot be shown."""
        cells = [each if each.isprintable() else "⏎" if each == "\n" else "·" for each in self.text] + [" "]
        start, room = self.at, width - columns(cells[self.at])
        while start > 0 and room >= columns(cells[start - 1]):
            start -= 1
            room -= columns(cells[start])
        end = self.at + 1
        while end < len(cells) and room >= columns(cells[end]):
            room -= columns(cells[end])
            end += 1
        back = sum(map(columns, cells[self.at : end]))
        return f"\r\x1b[K  > {''.join(cells[start:end])}\x1b[{back}D"

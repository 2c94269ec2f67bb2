"""Long pastes are folded: the prompt shows `[Pasted text #1 +400 lines]`, and the message has all of it."""

from __future__ import annotations

import re

_MAX_LINES = 8
_MAX_CHARS = 2_000
_MARK = re.compile(r"\[Pasted text #(\d+) \+\d+ lines?\]")


class Pastes:
    def __init__(self) -> None:
        self._texts: list[str] = []

    def folded(self, text: str) -> str:
        """What the prompt shows of a paste: itself while it is short."""
        lines = text.count("\n") + 1
        if lines <= _MAX_LINES and len(text) <= _MAX_CHARS:
            return text
        self._texts.append(text)
        return f"[Pasted text #{len(self._texts)} +{lines} line{'s' * (lines != 1)}]"

    def unfolded(self, message: str) -> str:
        def whole(match: re.Match[str]) -> str:
            number = int(match[1])
            return self._texts[number - 1] if 0 < number <= len(self._texts) else match[0]

        return _MARK.sub(whole, message)

"""What a model thinks before it answers: its last lines while it thinks, and the beginning of it afterwards."""

from __future__ import annotations

import textwrap
import time

from ..call_text import shortened
from ..output import visible
from .calls import seconds

_LIVE_LINES = 3
_KEPT_CHARS = 240
_MAX_CHARS = 20_000  # of which the end is looked at


class Thought:
    """Takes text in any pieces. It is not part of the answer, and not stored."""

    def __init__(self) -> None:
        self._beginning, self._end = "", ""
        self._since = 0.0

    def add(self, text: str) -> None:
        self._since = self._since or time.monotonic()
        if len(self._beginning) <= _KEPT_CHARS:
            self._beginning += text[:_MAX_CHARS]
        self._end = (self._end + text)[-_MAX_CHARS:]

    def tail(self, width: int) -> list[str]:
        """Its last lines."""
        kept = self._end.splitlines()[-_LIVE_LINES:]
        return [row for line in kept for row in textwrap.wrap(visible(line), width)][-_LIVE_LINES:]

    def finish(self) -> str:
        """What stays of it; empty when there was none."""
        text, began = " ".join(self._beginning.split()), self._since
        self._beginning, self._end, self._since = "", "", 0.0
        return f"Thought for {seconds(time.monotonic() - began)}: {shortened(text, _KEPT_CHARS)}" if text else ""

"""Watching one process's output: what matches becomes a notice, and too much of it a pause."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .notices import Notice, NoticeKind
from .patterns import LineMatcher, Rate, TooSlow

if TYPE_CHECKING:
    from .tracked import TrackedProcess

MAX_NOTICES, WINDOW_SECONDS = 5, 60.0
_LOOK_BYTES = 1 << 20
_LINES_SHOWN = 10
_LINE_CHARS = 500


class OutputWatch:
    """`watched_to` is where in the log it begins."""

    def __init__(self, patterns: Sequence[str], watched_to: int = 0) -> None:
        self._patterns = patterns
        self._matcher = LineMatcher(patterns)
        self._offset = watched_to
        self._rate = Rate(MAX_NOTICES, WINDOW_SECONDS)
        self.is_paused = False
        self.can_go_on = True

    @staticmethod
    def check(patterns: Sequence[str]) -> None:
        """Raises InvalidArguments for what cannot be watched for."""
        if patterns:
            LineMatcher(patterns)

    def look(self, tracked: TrackedProcess) -> Notice | None:
        """The news in what was printed since the last look, if there is any."""
        piece = tracked.read(self._offset, _LOOK_BYTES)
        self._offset = piece.offset + len(piece.data)
        if piece.end - self._offset > _LOOK_BYTES:  # it prints faster than anybody could read
            self._offset = piece.end - _LOOK_BYTES
        try:
            lines = self._matcher.feed(piece.data)
        except TooSlow:
            self.can_go_on = False
            return self._pause(tracked, "is not watched any more: a pattern took too long on its output", [])
        if not lines:
            return None
        if not self._rate.allows(time.monotonic()):
            what = (
                f"printed what you watch for over {MAX_NOTICES} times in {WINDOW_SECONDS:g} s, so the watch is paused"
            )
            return self._pause(tracked, f"{what}; it goes on when you have looked at it with poll or log", lines)
        count = f"{len(lines)} lines" if len(lines) > 1 else "a line"
        return self._notice(tracked, NoticeKind.MATCHED, f"printed {count} that you watch for", lines)

    def go_on(self, tracked: TrackedProcess) -> None:
        """From here: what came meanwhile has been seen."""
        self._offset = tracked.end_of_log()
        self._matcher = LineMatcher(self._patterns)
        self.is_paused = False

    def _pause(self, tracked: TrackedProcess, what: str, lines: list[str]) -> Notice:
        self.is_paused = True
        return self._notice(tracked, NoticeKind.PAUSED, what, lines)

    def _notice(self, tracked: TrackedProcess, kind: NoticeKind, what: str, lines: list[str]) -> Notice:
        shown = [tracked.presented(line)[:_LINE_CHARS] for line in lines[:_LINES_SHOWN]]
        if len(lines) > _LINES_SHOWN:
            shown.append(f"… and {len(lines) - _LINES_SHOWN} more")
        record = tracked.record
        return Notice(
            kind,
            record.id,
            record.command,
            record.task_id,
            record.session_id,
            "\n".join(shown),
            None,
            what,
            self._offset,
        )

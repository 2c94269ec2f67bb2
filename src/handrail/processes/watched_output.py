"""Watch processes: the end of one, and lines of its output that match, become notices; too many of them pause the watch."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple, Self

from ..base.rate_limit import RateLimit
from ..errors import InvalidArguments
from ..store.processes import ProcessRecord
from .tracked import TrackedProcess

log = logging.getLogger(__name__)
MAX_NOTICES, WINDOW_SECONDS = 5, 60.0
_POLL_BYTES = 1 << 20
_LINES_SHOWN, _LINE_CHARS = 10, 500
_MAX_LINE, _MAX_PATTERN, _MAX_PATTERNS = 16 << 10, 1000, 20
_MATCH_SECONDS = 0.05
_CONTROLS = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]")
_COMMAND_SHOWN = 120
_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 0.02, 0.5
_END_SECONDS = 5.0


class OutputWatch:
    """`watched_to` is the offset in the log to start at."""

    def __init__(self, patterns: Sequence[str], watched_to: int = 0) -> None:
        self._patterns, self._matcher = patterns, LineMatcher(patterns)
        self._offset = watched_to
        self._rate = RateLimit(MAX_NOTICES, WINDOW_SECONDS)
        self.is_paused, self.can_resume = False, True

    def poll(self, tracked: TrackedProcess) -> Notice | None:
        """A notice about what was printed since the last poll, if something matches."""
        piece = tracked.read(self._offset, _POLL_BYTES)
        self._offset = piece.offset + len(piece.data)
        if piece.end - self._offset > _POLL_BYTES:  # it prints faster than it can be read
            self._offset = piece.end - _POLL_BYTES
        try:
            lines = self._matcher.feed(piece.data)
        except TooSlow:
            self.can_resume = False
            return self._pause(tracked, "is no longer watched: a pattern took too long on its output", [])
        if not lines:
            return None
        if not self._rate.allows():
            what = f"printed what you watch for over {MAX_NOTICES} times in {WINDOW_SECONDS:g} s"
            rest = "so the watch is paused; it goes on when you have looked at it with poll or log"
            return self._pause(tracked, f"{what}, {rest}", lines)
        count = f"{len(lines)} lines" if len(lines) > 1 else "a line"
        return self._notice(tracked, NoticeKind.MATCHED, f"printed {count} that you watch for", lines)

    def resume(self, tracked: TrackedProcess) -> None:
        """Resume here: what came meanwhile has been seen."""
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
        return Notice.of(tracked.record, kind, shown, what=what, watched_to=self._offset)


class TooSlow(Exception):
    """A pattern took too long."""


class LineMatcher:
    """Regular expressions; one that occurs in a line as plain text counts too, in case a bracket was not escaped."""

    def __init__(self, patterns: Sequence[str]) -> None:
        # The standard engine cannot be stopped once it backtracks endlessly; this one takes a timeout.
        import regex

        if len(patterns) > _MAX_PATTERNS or any(len(pattern) > _MAX_PATTERN for pattern in patterns):
            why = f"at most {_MAX_PATTERNS} patterns of {_MAX_PATTERN} characters; join them with |"
            raise InvalidArguments(f"watch_patterns: {why}")
        if any(not pattern.strip() for pattern in patterns):
            raise InvalidArguments("watch_patterns: an empty pattern matches every line; give one to look for")
        self._texts = tuple(patterns)
        self._expressions: list[Any] = []
        for pattern in patterns:
            try:
                self._expressions.append(regex.compile(pattern))
            except regex.error as error:
                why = f"{pattern!r} is not a regular expression: {error}; put \\ before ( [ * + ? . to mean them"
                raise InvalidArguments(f"watch_patterns: {why}") from None
        self._rest, self._rest_matched = b"", False

    def feed(self, data: bytes) -> list[str]:
        """The lines that match, each once. An unfinished line counts too: a prompt has no newline."""
        *lines, rest = (self._rest + data).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        found = [line for line in map(_clean, lines[:1]) if not self._rest_matched and self._matches(line)]
        found += [line for line in map(_clean, lines[1:]) if self._matches(line)]
        was_matched = self._rest_matched and not lines
        self._rest = rest[-_MAX_LINE:]
        self._rest_matched = was_matched or self._matches(_clean(rest))
        if self._rest_matched and not was_matched:
            found.append(_clean(rest))
        return found

    def _matches(self, line: str) -> bool:
        if not line:
            return False
        try:
            found = (expression.search(line, timeout=_MATCH_SECONDS) for expression in self._expressions)
            return any(text in line for text in self._texts) or any(found)
        except TimeoutError:
            raise TooSlow from None


def _clean(line: bytes) -> str:
    return _CONTROLS.sub(b"", line)[-_MAX_LINE:].decode("utf-8", "replace").rstrip()


class NoticeKind(Enum):
    ENDED = "ended"
    MATCHED = "matched"  # it printed a line that matches
    PAUSED = "paused"  # too many lines matched: the watch resumes when the process is looked at


class Notice(NamedTuple):
    """`text` is the last lines of its output, or those that matched."""

    kind: NoticeKind
    id: str
    command: str
    task_id: str
    session_id: str | None
    text: str
    exit_code: int | None = None
    what: str = ""  # how it ended, or why the watch is paused
    watched_to: int = 0

    def __str__(self) -> str:
        command = self.command if len(self.command) <= _COMMAND_SHOWN else self.command[:_COMMAND_SHOWN] + "…"
        return f"Background process {self.id} ({command}) {self.what}" + (f":\n{self.text}" if self.text else ".")

    @classmethod
    def of(cls, record: ProcessRecord, kind: NoticeKind, lines: Sequence[str], **more: Any) -> Self:
        return cls(kind, record.id, record.command, record.task_id, record.session_id, "\n".join(lines), **more)


class PollResult(Enum):
    """What polling one process found."""

    QUIET = "quiet"
    NEWS = "news"
    OVER = "over"  # there is nothing more to come from it


class Watcher:
    """`poll` is called for each process in turn."""

    def __init__(self, poll: Callable[[TrackedProcess], PollResult]) -> None:
        self._poll = poll
        self._watched: dict[str, TrackedProcess] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def watch(self, process: TrackedProcess) -> None:
        with self._changed:
            if self._is_closed:
                return
            self._watched[process.id] = process
            if self._thread is None or not self._thread.is_alive():  # a forked child has none
                self._thread = threading.Thread(target=self._run, name="handrail-processes", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def forget(self, id: str) -> None:  # noqa: A002  the process's id
        with self._changed:
            self._watched.pop(id, None)

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._watched.clear()
            thread = self._thread
            self._changed.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join(_END_SECONDS)

    def _run(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while True:
            with self._changed:
                if self._changed.wait(pause):
                    pause = _FIRST_PAUSE_SECONDS
                watched = list(self._watched.values())
                if not watched:
                    self._thread = None
                    return
            is_quiet = {self._poll_safely(process) for process in watched} == {PollResult.QUIET}
            pause = min(pause * 1.3, _MAX_PAUSE_SECONDS) if is_quiet else _FIRST_PAUSE_SECONDS

    def _poll_safely(self, process: TrackedProcess) -> PollResult:
        try:
            result = self._poll(process)
        except Exception as error:  # noqa: BLE001  one process's trouble must not leave the others unwatched
            log.warning("process %s can no longer be watched: %s: %s", process.id, type(error).__name__, error)
            result = PollResult.OVER
        if result is PollResult.OVER:
            self.forget(process.id)
        return result

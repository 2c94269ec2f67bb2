"""Which lines of a process's output are news: those that match what someone watches for, at a bearable rate."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from typing import Any

from ..errors import InvalidArguments

_MAX_LINE = 16 << 10
_MAX_PATTERN = 1000
_MAX_PATTERNS = 20
_MATCH_SECONDS = 0.05
_CONTROLS = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]")


class TooSlow(Exception):
    """A pattern took longer than is good for everybody else."""


class LineMatcher:
    """Regular expressions; one that is found in a line as plain text counts too, for who forgot to escape a bracket."""

    def __init__(self, patterns: Sequence[str]) -> None:
        # The standard engine cannot be stopped once it backtracks without end; this one takes a limit.
        import regex

        if len(patterns) > _MAX_PATTERNS or any(len(pattern) > _MAX_PATTERN for pattern in patterns):
            raise InvalidArguments(
                f"watch_patterns: at most {_MAX_PATTERNS} patterns of {_MAX_PATTERN} characters; join them with |"
            )
        if any(not pattern.strip() for pattern in patterns):
            raise InvalidArguments("watch_patterns: an empty pattern matches every line; say what to look for")
        self._texts = tuple(patterns)
        self._expressions: list[Any] = []
        for pattern in patterns:
            try:
                self._expressions.append(regex.compile(pattern))
            except regex.error as error:
                raise InvalidArguments(
                    f"watch_patterns: {pattern!r} is not a regular expression: {error}; put \\ before ( [ * + ? . to mean them"
                ) from None
        self._rest = b""
        self._rest_matched = False

    def feed(self, data: bytes) -> list[str]:
        """The lines that match, each once. What has no newline yet is a line too: a question waits at its end."""
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
            return any(text in line for text in self._texts) or any(
                expression.search(line, timeout=_MATCH_SECONDS) for expression in self._expressions
            )
        except TimeoutError:
            raise TooSlow from None


class Rate:
    """At most so many events in so many seconds."""

    def __init__(self, count: int, seconds: float) -> None:
        self._count, self._seconds = count, seconds
        self._times: deque[float] = deque()

    def allows(self, now: float) -> bool:
        """Whether one more is all right; if so it counts."""
        while self._times and now - self._times[0] >= self._seconds:
            self._times.popleft()
        if len(self._times) >= self._count:
            return False
        self._times.append(now)
        return True


def _clean(line: bytes) -> str:
    return _CONTROLS.sub(b"", line)[-_MAX_LINE:].decode("utf-8", "replace").rstrip()

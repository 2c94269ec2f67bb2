"""Match lines against a regular expression, in a process of its own.

Python's `re` cannot be interrupted: a pattern that backtracks without end holds the thread, and the interpreter's lock
with it, until it is through. A process can be killed. This file is that process: it is started as a script by `scan`,
gets text on stdin, and imports nothing of Handrail. It never opens a file: what may be read was decided before.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
import warnings
from collections import deque
from collections.abc import Iterator
from typing import IO, Any

MAX_TEXT_CHARS = 500
_LEAD_CHARS = 100
_MAX_LINE_CHARS = 32 << 20
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def clip(line: str, start: int = 0) -> str:
    """A line as it is shown: of a long one the part around `start`."""
    if len(line) <= MAX_TEXT_CHARS:
        return line
    first = max(0, min(start - _LEAD_CHARS, len(line) - MAX_TEXT_CHARS))
    last = first + MAX_TEXT_CHARS
    return ("…" if first else "") + line[first:last] + ("…" if last < len(line) else "")


class FileMatches:
    """The lines of one file that match: how many, and those from the `first`th to the `last`th with their context."""

    def __init__(self, pattern: re.Pattern[str], *, first: int, last: int, context: int) -> None:
        self._pattern, self._first, self._last, self._context = pattern, first, last, context
        self._recent: deque[str] = deque(maxlen=context)
        self._open: list[list[str]] = []
        self.count = 0
        self.hits: list[tuple[int, str, list[str], list[str]]] = []

    def take(self, number: int, line: str) -> None:
        if self._open:
            for after in self._open:
                after.append(clip(line))
            self._open = [after for after in self._open if len(after) < self._context]
        match = self._pattern.search(line)
        if match is not None:
            if self._first <= self.count < self._last:
                after = []
                self.hits.append((number, clip(line, match.start()), list(self._recent), after))
                if self._context:
                    self._open.append(after)
            self.count += 1
        if self._context:
            self._recent.append(clip(line))


def lines_of(blocks: Iterator[bytes]) -> Iterator[str]:
    """The lines of a file that comes in blocks, without their ends. Raises ValueError when it is binary."""
    head = next(blocks, b"")
    mark, codec = next(((mark, codec) for mark, codec in _MARKS if head.startswith(mark)), (b"", "utf-8"))
    decoder = codecs.getincrementaldecoder(codec)("replace")
    rest = decoder.decode(head[len(mark) :])
    for block in blocks:
        *lines, rest = rest.split("\n")
        yield from _checked(lines)
        if len(rest) > _MAX_LINE_CHARS:  # a line without end is searched in pieces
            yield from _checked([rest])
            rest = ""
        rest += decoder.decode(block)
    *lines, rest = (rest + decoder.decode(b"", final=True)).split("\n")
    yield from _checked(lines)
    if rest:
        yield from _checked([rest])


def _checked(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if "\0" in line:
            raise ValueError("binary")
        yield line.removesuffix("\r")


def compiled(pattern: str) -> re.Pattern[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `[[a]` is only a warning
        return re.compile(pattern)


def main() -> None:
    """One JSON line in and out: first the pattern, then for each file what is wanted of it, followed by its blocks."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    order = json.loads(source.readline())
    try:
        pattern = compiled(order["pattern"])
    except (re.error, RecursionError, OverflowError) as error:
        _say(sink, {"error": getattr(error, "msg", None) or str(error), "position": getattr(error, "pos", None)})
        return
    _say(sink, {})
    while wanted := source.readline():
        _say(sink, _search(pattern, json.loads(wanted), source))


def _search(pattern: re.Pattern[str], wanted: Any, source: IO[bytes]) -> dict[str, Any]:
    matches = FileMatches(pattern, **wanted)
    blocks = _blocks(source)
    try:
        for number, line in enumerate(lines_of(blocks), 1):
            matches.take(number, line)
    except ValueError:
        for _ in blocks:  # the rest of a binary file must not be taken for the next order
            pass
        return {"count": 0, "hits": []}
    return {"count": matches.count, "hits": matches.hits}


def _blocks(source: IO[bytes]) -> Iterator[bytes]:
    """Each block comes after its length; a length of 0 ends the file."""
    while size := int.from_bytes(source.read(4), "big"):
        yield source.read(size)


def _say(sink: IO[bytes], answer: dict[str, Any]) -> None:
    sink.write(json.dumps(answer).encode() + b"\n")
    sink.flush()


if __name__ == "__main__":
    main()

"""Search with Python alone: slower than ripgrep, and the same on every machine and every kind of files."""

from __future__ import annotations

import codecs
import re
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ....errors import CallCancelled, InvalidArguments, ToolError
from ....protocols import Files
from .query import REPOSITORY, UNDO_FOLDER, Found, Hit, Query, Rules, clip

if TYPE_CHECKING:
    import regex

_BLOCK_BYTES = 4 << 20
_MAX_LINE_CHARS = 32 << 20
_FIRST_SECONDS, _MAX_SECONDS = 0.1, 5.0
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def list_files(files: Files, query: Query) -> list[str]:
    """The files that are searched, sorted."""
    if query.only is not None:
        return [query.only]
    found = walk(files, query.top, query.above or Rules(), query.check)
    return sorted(path for path in found if query.wants(path))


def search_lines(files: Files, query: Query) -> Found:
    pattern = compiled(query.pattern)
    counts: list[tuple[str, int]] = []
    hits: list[Hit] = []
    total = 0
    for path in list_files(files, query):
        query.check()
        try:
            count, found = _matches(files, path, query, pattern, total)
        except _IsBinary:
            continue
        if count:
            counts.append((path, count))
            total += count
        hits += found
    return Found(counts, hits)


def compiled(pattern: str) -> regex.Pattern[str]:
    """Raises InvalidArguments for what is no regular expression to Python."""
    import regex  # unlike `re` it takes a timeout, which stops endless backtracking

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `[[a]` is only a warning
            re.compile(pattern)  # it knows less than `regex`, and is what the documentation promises
        return regex.compile(pattern)
    except (re.error, regex.error, RecursionError, OverflowError) as error:
        position = getattr(error, "pos", None)
        place = "" if position is None else f" at position {position}"
        raise InvalidArguments(
            f"pattern is not a valid regular expression: {getattr(error, 'msg', error)}{place}; "
            "put a backslash before literal characters",
            argument="pattern",
            position=position,
            pattern=pattern[:200],
        ) from None


class _IsBinary(Exception):
    """The file is not text."""


def _matches(files: Files, path: str, query: Query, pattern: regex.Pattern[str], skipped: int) -> tuple[int, list[Hit]]:
    """How many lines of a file match, and those of them that are wanted, if so many matched in the files before it."""
    recent: deque[str] = deque(maxlen=query.context)
    unfinished: list[list[str]] = []  # the lines after each hit that still wants some
    count = 0
    found: list[tuple[int, str, tuple[str, ...], list[str]]] = []
    for number, line in enumerate(_lines(_blocks(files, f"{query.top.rstrip('/')}/{path}")), 1):
        for after in unfinished:
            after.append(clip(line))
        unfinished = [after for after in unfinished if len(after) < query.context]
        if (match := _match(pattern, line, query)) is not None:
            if query.first <= skipped + count < query.last:
                found.append((number, clip(line, match.start()), tuple(recent), []))
                unfinished += [found[-1][3]] if query.context else []
            count += 1
        if query.context:
            recent.append(clip(line))
    return count, [Hit(path, at, text, before, tuple(after)) for at, text, before, after in found]


def _match(pattern: regex.Pattern[str], line: str, query: Query) -> regex.Match[str] | None:
    """Nothing interrupts a match that is under way, so it is given a little time first, then more."""
    seconds = _FIRST_SECONDS
    while True:
        query.check()
        try:
            return pattern.search(line, timeout=max(0.0, min(seconds, query.seconds_left)), concurrent=True)
        except TimeoutError:
            if seconds >= _MAX_SECONDS:
                raise query.too_long() from None
        seconds *= 2


def _lines(blocks: Iterator[bytes]) -> Iterator[str]:
    """The lines of a file that comes in blocks, without their ends. Raises _IsBinary."""
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
    yield from _checked([*lines, rest] if rest else lines)


def _checked(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if "\0" in line:
            raise _IsBinary
        yield line.removesuffix("\r")


def _blocks(files: Files, path: str) -> Iterator[bytes]:
    """A file in pieces; what cannot be read is as good as empty."""
    position = 0
    size = min(_BLOCK_BYTES, files.max_read_bytes)
    while True:
        try:
            block = files.read(path, offset=position, max_bytes=size)
        except ToolError:
            return
        if block:
            yield block
        if len(block) < size:
            return
        position += size


def walk(files: Files, top: str, rules: Rules, check: Callable[[], None]) -> Iterator[str]:
    """The regular files below `top`, as paths relative to it, in no particular order. Links are not followed. `check` is called
    for every folder, and ends the walk by raising."""
    base = top if top.endswith("/") else top + "/"
    pending = [(base, rules)]
    while pending:
        folder, outer = pending.pop()
        check()
        try:
            entries = files.entries(folder)
        except CallCancelled:
            raise
        except ToolError:
            if folder == base:
                raise
            continue  # a folder that may not be read is as good as empty
        inner = outer.inside(files, folder, frozenset(entry.name for entry in entries))
        for entry in entries:
            path = folder + entry.name
            is_ours = entry.name == REPOSITORY or entry.name.startswith(UNDO_FOLDER)
            if is_ours or not (entry.is_dir or entry.is_file):
                continue
            if inner.ignores(path, is_dir=entry.is_dir):
                continue
            if entry.is_dir:
                pending.append((path + "/", inner))
            else:
                yield path[len(base) :]

"""Cut a page out of a file of any size."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, NamedTuple

from ...base.safe_text import well_formed
from ...errors import InvalidArguments
from ...files.failures import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...protocols import Files
    from ...types import CancelToken

MAX_LINE_CHARS = 2_000
MAX_SINGLE_LINE_CHARS = 50_000
MAX_PAGE_CHARS = 80_000
_BLOCK_BYTES = 1 << 20
# At most this much of a very long line is held in memory.
_MAX_HELD_BYTES = 8 << 20


class Window(NamedTuple):
    """The requested lines. A page of one line shows more of it: that is how a very long line is read."""

    offset: int
    limit: int
    column: int = 1

    @property
    def line_chars(self) -> int:
        return MAX_SINGLE_LINE_CHARS if self.limit == 1 else MAX_LINE_CHARS


class Page(NamedTuple):
    """Some lines of a file. `total_lines` is None when they were not counted."""

    content: str
    start_line: int
    end_line: int
    more: bool
    total_lines: int | None
    cut_lines: tuple[int, ...]


def page_of(lines: list[str], window: Window, *, path: str) -> Page:
    """The page of a file that is in memory."""
    if window.offset > max(1, len(lines)):
        raise past_the_end(path, window.offset, len(lines))
    return _page(iter(lines[window.offset - 1 :]), window, total_lines=len(lines))


def page_of_large(files: Files, path: str, window: Window, cancel: CancelToken | None) -> Page:
    """The page of a file that is too large for memory: read in pieces from its start to the end of the page."""
    return _page(_lines_from(files, path, window.offset, cancel), window, total_lines=None)


def past_the_end(path: str, offset: int, total_lines: int) -> InvalidArguments:
    count = f"{total_lines} line" + ("" if total_lines == 1 else "s")
    return InvalidArguments(f"offset {offset} is past the end: {shown(path)} has {count}", total_lines=total_lines)


def _page(lines: Iterator[str], window: Window, *, total_lines: int | None) -> Page:
    """Ends early when it would grow too long."""
    kept: list[str] = []
    cut: list[int] = []
    chars, more = 0, False
    for number, line in enumerate(lines, window.offset):
        text = _cut_line(line, number, window)
        if len(kept) == window.limit or (kept and chars + len(text) > MAX_PAGE_CHARS):
            more = True
            break
        chars += len(text)
        kept.append(text)
        if text is not line:
            cut.append(number)
    end_line = window.offset + len(kept) - 1
    return Page(well_formed("".join(kept)), window.offset, end_line, more, total_lines, tuple(cut))


def _cut_line(line: str, number: int, window: Window) -> str:
    first, last = window.column - 1, window.column - 1 + window.line_chars
    body = line.rstrip("\r\n")
    if first == 0 and len(body) <= last:
        return line
    shown_part = body[first:last]
    if first:
        shown_part = f"[from character {window.column}] {shown_part}"
    if len(body) > last:
        left = len(body) - last
        shown_part += f" [cut: {left} more characters; go on with offset={number} limit=1 column={last + 1}]"
    return shown_part + line[len(body) :]


def _lines_from(files: Files, path: str, first: int, cancel: CancelToken | None) -> Iterator[str]:
    """The lines from number `first` on. Earlier lines are counted, not kept."""
    number, position, held, ended = 1, 0, bytearray(), True
    while block := files.read(path, offset=position, max_bytes=_BLOCK_BYTES):
        if cancel is not None:
            cancel.raise_if_cancelled()
        ended = block.endswith(b"\n")
        block, position = (block if position else block.removeprefix(codecs.BOM_UTF8)), position + len(block)
        newlines = block.count(b"\n")
        if number + newlines < first:
            number += newlines
            continue
        *pieces, rest = block.split(b"\n")
        for piece in pieces:
            if number >= first:
                yield _line(held, piece + b"\n")
                held.clear()
            number += 1
        if number >= first and len(held) <= _MAX_HELD_BYTES:
            held += rest
    total = number - 1 if ended else number
    if first > total:
        raise past_the_end(path, first, total)
    if held:
        yield _line(held, b"")


def _line(held: bytearray, rest: bytes) -> str:
    line = bytes(held) + rest
    if len(line) <= _MAX_HELD_BYTES:
        return line.decode("utf-8", "replace")
    return line[:_MAX_HELD_BYTES].decode("utf-8", "replace") + " [the line goes on and cannot be shown further]\n"

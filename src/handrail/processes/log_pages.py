"""A process's log for a reader: lines by number or by pattern, without terminal control sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base.safe_text import clean
from ..errors import InvalidArguments

if TYPE_CHECKING:
    from ..types import JsonDict
    from .tracked import TrackedProcess

_MAX_BYTES = 64 << 20  # more than any log keeps
_PAGE_CHARS = 40_000
_LINE_CHARS = 2_000
_MATCH_SECONDS = 2.0


def last_lines(tracked: TrackedProcess, max_bytes: int) -> JsonDict:
    """The end of its output in whole lines, and how much came before."""
    piece = tracked.tail(max_bytes)
    data = piece.data
    if piece.offset and b"\n" in data[:-1]:  # the first line is incomplete
        data = data[data.index(b"\n") + 1 :]
    earlier = piece.offset + len(piece.data) - len(data)
    return {"output": tracked.presented(clean(data)), **({"earlier_bytes": earlier} if earlier else {})}


def page(tracked: TrackedProcess, *, offset: int | None, limit: int, pattern: str | None) -> JsonDict:
    """`limit` lines from line `offset` on, or the last ones; with a pattern, of those that match."""
    expression = _compiled(pattern) if pattern else None
    piece = tracked.read(0, _MAX_BYTES)
    lines = tracked.presented(clean(piece.data)).removesuffix("\n").split("\n") if piece.data else []
    numbered = list(enumerate(lines, 1))
    shown: JsonDict = {"total_lines": len(numbered)}
    if piece.offset:
        shown["dropped_bytes"] = piece.offset  # the log keeps the latest part of a long output
    if expression is not None:
        numbered = _matching(numbered, expression)
        shown["total_matches"] = len(numbered)
    first = max(0, len(numbered) - limit) if offset is None else offset - 1
    chosen = numbered[first : first + limit]
    if offset is not None and not chosen and numbered:
        raise InvalidArguments(f"offset {offset} is past the end: there are {len(numbered)}", argument="offset")
    chosen = _fitting(chosen, from_end=offset is None)
    if chosen:
        shown |= {"first_line": chosen[0][0], "last_line": chosen[-1][0]}
        if offset is not None and first + len(chosen) < len(numbered):
            shown["next_offset"] = first + len(chosen) + 1
    shown["output"] = "\n".join(f"{number}: {line}" if pattern else line for number, line in chosen)
    return shown


def _fitting(lines: list[tuple[int, str]], *, from_end: bool) -> list[tuple[int, str]]:
    """As many as fit into one result, the last or the first of them."""
    fitting: list[tuple[int, str]] = []
    room = _PAGE_CHARS
    for number, line in reversed(lines) if from_end else lines:
        room -= min(len(line), _LINE_CHARS) + 1
        if room < 0:
            break
        cut = f"{line[:_LINE_CHARS]}… ({len(line):,} characters)" if len(line) > _LINE_CHARS else line
        fitting.append((number, cut))
    return fitting[::-1] if from_end else fitting


def _compiled(pattern: str) -> Any:
    # The standard engine cannot be stopped once it backtracks endlessly; this one takes a timeout.
    import regex

    try:
        return regex.compile(pattern)
    except regex.error as error:
        raise InvalidArguments(f"pattern is not a regular expression: {error}", argument="pattern") from None


def _matching(lines: list[tuple[int, str]], expression: Any) -> list[tuple[int, str]]:
    try:
        return [one for one in lines if expression.search(one[1], timeout=_MATCH_SECONDS)]
    except TimeoutError:
        raise InvalidArguments(
            f"pattern takes longer than {_MATCH_SECONDS:g} s on one line; write it more simply", argument="pattern"
        ) from None

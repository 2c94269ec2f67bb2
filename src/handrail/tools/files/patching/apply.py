"""Apply changes to the text of one file."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from ....errors import InvalidArguments, ToolFailed
from ....files.failures import shown
from ....files.text import line_endings, with_crlf
from .changes import Hunk, Op
from .match import Haystack, How, folded
from .place import Edit, Placer, edit_at, misfit

_MAX_PLACES_NAMED = 20
# Beyond that, comparing every line with every other takes longer than it is worth.
_MAX_COMPARED_FULLY = 1_000


class Applied(NamedTuple):
    """The new text, and for each hunk its line and how it matched."""

    body: str
    hunks: tuple[tuple[int, How], ...]


def apply_hunks(body: str, hunks: Sequence[Hunk], *, path: str) -> Applied:
    """Raises ToolFailed when a hunk does not fit, or fits in several places."""
    crlf = line_endings(body) == "crlf"
    if crlf:
        body = body.replace("\r\n", "\n")
        hunks = [hunk.without_returns() for hunk in hunks]
    lines, newline = _lines(body)
    placer = Placer(lines, path=path, hunks=len(hunks))
    edits = [placer.place(number, hunk) for number, hunk in enumerate(hunks, 1)]
    for hunk, edit in zip(hunks, edits, strict=True):
        if hunk.final_newline is not None and edit.at + len(hunk.old) >= len(lines):
            newline = hunk.final_newline
    body = _joined(_edited(lines, edits), newline=newline)
    return Applied(with_crlf(body) if crlf else body, tuple((edit.at + 1, edit.how) for edit in edits))


def replace_string(body: str, old: str, new: str, *, replace_all: bool, path: str) -> Applied:
    """Replace one string, or every occurrence. Raises InvalidArguments or ToolFailed."""
    if not old:
        raise InvalidArguments("old_string is empty: give the text to replace. To write a whole file use `write_file`.")
    if old == new:
        raise InvalidArguments("old_string and new_string are the same: there is nothing to change")
    crlf = line_endings(body) == "crlf"
    if crlf:
        body, old, new = (text.replace("\r\n", "\n") for text in (body, old, new))
    replaced = (
        _replace_characters(body, old, new, How.EXACT, replace_all=replace_all, path=path)
        or _replace_lines(body, old, new, replace_all=replace_all, path=path)
        or _replace_characters(body, old, new, How.UNICODE, replace_all=replace_all, path=path)
    )
    if replaced is None:
        lines, _ = _lines(body)
        raise misfit(f"old_string is not in {shown(path)}.", lines, _lines(old)[0], path=shown(path))
    return Applied(with_crlf(replaced.body), replaced.hunks) if crlf else replaced


def new_content(hunks: Sequence[Hunk]) -> str:
    """The content of a file that a patch adds."""
    newline = not any(hunk.final_newline is False for hunk in hunks)
    return _joined([line for hunk in hunks for line in hunk.new], newline=newline)


def _replace_characters(body: str, old: str, new: str, how: How, *, replace_all: bool, path: str) -> Applied | None:
    """Anywhere in the text, also within a line."""
    if how is How.EXACT:
        spans = _found(body, old)
    else:
        (haystack, at), (needle, _) = folded(body), folded(old)
        # An ellipsis is matched as a whole.
        whole = [
            (start, end)
            for start, end in _found(haystack, needle)
            if (not start or at[start - 1] < at[start]) and at[end - 1] < at[end]
        ]
        spans = [(at[start], at[end]) for start, end in whole]
    starts = [start for start, _ in spans]
    if not starts:
        return None
    places = _line_numbers(body, starts)
    _check_one(places, replace_all=replace_all, path=path)
    pieces: list[str] = []
    position = 0
    for start, position_after in spans:
        pieces += (body[position:start], new)
        position = position_after
    pieces.append(body[position:])
    return Applied("".join(pieces), tuple((line, how) for line in places))


def _found(haystack: str, needle: str) -> list[tuple[int, int]]:
    """Where it is, without overlaps: start and end."""
    spans: list[tuple[int, int]] = []
    at = haystack.find(needle) if needle.strip() else -1
    while at >= 0:
        spans.append((at, at + len(needle)))
        at = haystack.find(needle, at + len(needle))
    return spans


def _replace_lines(body: str, old: str, new: str, *, replace_all: bool, path: str) -> Applied | None:
    """By complete lines, as tolerant as the stages of `match`."""
    lines, newline = _lines(body)
    block = old.split("\n")
    target = new.split("\n")
    if block[-1] == "":
        block.pop()
        if target[-1] == "":
            target.pop()
    how, places = Haystack(lines).find(block, lambda _: True)
    if not places:
        return None
    _check_one([place + 1 for place in places], replace_all=replace_all and how is not How.SIMILAR, path=path)
    hunk = _as_hunk(block, target)
    edits: list[Edit] = []
    for place in places:
        if not edits or place >= edits[-1].at + len(block):
            edits.append(edit_at(lines, hunk, place, how))
    return Applied(_joined(_edited(lines, edits), newline=newline), tuple((edit.at + 1, how) for edit in edits))


def _check_one(lines: list[int], *, replace_all: bool, path: str) -> None:
    count = len(lines)
    if count == 1 or replace_all:
        return
    named = ", ".join(map(str, lines[:_MAX_PLACES_NAMED])) + (" and more" if count > _MAX_PLACES_NAMED else "")
    raise ToolFailed(
        f"old_string is in {shown(path)} {count} times, at lines {named}: add text around it until it is there once, "
        "or set replace_all. Nothing was written.",
        path=shown(path),
        lines=lines[:_MAX_PLACES_NAMED],
    )


def _as_hunk(old: Sequence[str], new: Sequence[str]) -> Hunk:
    """Two blocks as one hunk: lines in both are kept as the file has them."""
    lines: list[tuple[Op, str]] = []
    matcher = SequenceMatcher(None, old, new, autojunk=len(old) + len(new) > _MAX_COMPARED_FULLY)
    for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if tag == "equal":
            lines += ((Op.KEEP, line) for line in old[old_start:old_end])
        else:
            lines += ((Op.DROP, line) for line in old[old_start:old_end])
            lines += ((Op.ADD, line) for line in new[new_start:new_end])
    return Hunk(tuple(lines))


def _lines(body: str) -> tuple[list[str], bool]:
    """The lines without their ends, and whether the last has one. A file without lines will end with one."""
    lines = body.split("\n")
    if lines[-1]:
        return lines, False
    return lines[:-1], True


def _joined(lines: Sequence[str], *, newline: bool) -> str:
    return "\n".join(lines) + ("\n" if newline and lines else "")


def _edited(lines: Sequence[str], edits: Sequence[Edit]) -> list[str]:
    result: list[str] = []
    position = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        result += lines[position : edit.start]
        result += edit.lines
        position = edit.end
    result += lines[position:]
    return result


def _line_numbers(body: str, starts: Sequence[int]) -> list[int]:
    numbers: list[int] = []
    line, position = 1, 0
    for start in starts:
        line += body.count("\n", position, start)
        position = start
        numbers.append(line)
    return numbers

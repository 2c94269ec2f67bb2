"""Read patches of the V4A format: `*** Begin Patch`, `*** Update File: ...`, `@@`, `*** End Patch`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ....errors import InvalidArguments
from ....files.failures import shown
from .changes import Action, Change, Hunk, Op

_HEADER = re.compile(r"\*\*\* (Update|Add|Delete|Move) File:\s*(.*?)\s*")
_MOVE_TO = re.compile(r"\*\*\* Move to:\s*(.*?)\s*")
_RANGE = re.compile(r"@@+\s*-(\d+)(?:,\d+)?\s+\+\d+(?:,\d+)?\s*@@.*")
_OPS = {op.value: op for op in Op}
_NO_NEWLINE = "\\ No newline at end of file"


def is_v4a(text: str) -> bool:
    return re.search(r"(?m)^\*\*\* (?:Begin Patch|(?:Update|Add|Delete|Move) File:)", text) is not None


def parse_v4a(text: str) -> list[Change]:
    """The changes in order. Raises InvalidArguments with the number of the line that cannot be understood."""
    reader = _Reader()
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() == "*** End Patch":
            break
        reader.take(number, line)
    return reader.finish()


@dataclass(slots=True)
class _OpenHunk:
    """A hunk that is still being read."""

    anchors: list[str] = field(default_factory=list)
    line: int | None = None
    lines: list[tuple[Op, str]] = field(default_factory=list)
    at_end: bool = False
    final_newline: bool | None = None
    # How many lines at the end are empty without even the space of a context line.
    bare_tail: int = 0

    def add(self, op: Op, text: str, *, bare: bool = False) -> None:
        self.lines.append((op, text))
        self.bare_tail = self.bare_tail + 1 if bare else 0

    def close(self) -> Hunk:
        # Empty lines before the next header are the writer's spacing, not lines of the file.
        kept = self.lines if self.at_end else self.lines[: len(self.lines) - self.bare_tail]
        return Hunk(tuple(kept), tuple(self.anchors), self.line, self.at_end, self.final_newline)


class _Reader:
    """Takes one line after the other."""

    def __init__(self) -> None:
        self._changes: list[Change] = []
        self._action: Action | None = None
        self._path = ""
        self._move_to: str | None = None
        self._hunks: list[_OpenHunk] = []

    def take(self, number: int, line: str) -> None:
        if header := _HEADER.fullmatch(line):
            self._close()
            self._open(number, header[1], header[2])
        elif move := _MOVE_TO.fullmatch(line):
            if self._action is not Action.UPDATE or self._hunks:
                raise _wrong(number, line, "`*** Move to:` comes right after `*** Update File:`")
            self._move_to = move[1]
        elif self._action is None:
            if line.startswith(("+", "-", "@@")):
                raise _wrong(number, line, "a `*** Update File: <path>` line must come before it")
        else:
            self._body(number, line)

    def finish(self) -> list[Change]:
        self._close()
        if not self._changes:
            raise InvalidArguments("the patch names no file; begin a file with `*** Update File: <path>`")
        return self._changes

    def _open(self, number: int, verb: str, path: str) -> None:
        if verb == "Move":
            source, arrow, target = path.partition(" -> ")
            if not arrow or not source or not target:
                raise _wrong(number, path, "a move is written `*** Move File: <old path> -> <new path>`")
            self._action, self._path, self._move_to = Action.UPDATE, source.strip(), target.strip()
        else:
            self._action, self._path, self._move_to = Action(verb.lower()), path, None
        if not self._path:
            raise _wrong(number, path, "the path is missing")

    def _body(self, number: int, line: str) -> None:
        if self._action is Action.DELETE:
            if line.strip():
                raise _wrong(number, line, "nothing follows `*** Delete File:`")
        elif self._action is Action.ADD:
            self._added(number, line)
        else:
            self._updated(number, line)

    def _added(self, number: int, line: str) -> None:
        if not self._hunks:
            self._hunks.append(_OpenHunk())
        if line.startswith("+"):
            self._hunks[0].add(Op.ADD, line[1:])
        elif line == _NO_NEWLINE:
            self._hunks[0].final_newline = False
        elif line.strip() and not line.startswith("@@"):
            raise _wrong(number, line, "every line of an added file starts with +")

    def _updated(self, number: int, line: str) -> None:
        if line.startswith("@@"):
            self._heading(line)
            return
        if not self._hunks:
            if not line.strip():
                return
            self._hunks.append(_OpenHunk())
        hunk = self._hunks[-1]
        if line.strip() == "*** End of File":
            hunk.at_end = True
        elif line == _NO_NEWLINE:
            hunk.final_newline = hunk.lines[-1][0] is Op.DROP if hunk.lines else False
        elif not line.rstrip("\r"):
            if not hunk.at_end:
                hunk.add(Op.KEEP, line, bare=True)  # models drop the space of an empty context line
        elif line[0] in _OPS:
            hunk.add(_OPS[line[0]], line[1:])
        else:
            raise _wrong(number, line, "a line of a hunk starts with a space, - or +")

    def _heading(self, line: str) -> None:
        previous = self._hunks[-1] if self._hunks else None
        if previous is None or previous.lines:
            previous = _OpenHunk()
            self._hunks.append(previous)
        if spot := _RANGE.fullmatch(line.rstrip()):
            previous.line = int(spot[1])
        elif anchor := line.strip("@ \t\r"):
            previous.anchors.append(anchor)

    def _close(self) -> None:
        if self._action is None:
            return
        hunks = tuple(hunk.close() for hunk in self._hunks)
        hunks = tuple(hunk for hunk in hunks if hunk.lines)
        if self._action is Action.UPDATE and not hunks and not self._move_to:
            raise InvalidArguments(f"{shown(self._path)} has no hunk: nothing in the patch says what to change")
        self._changes.append(Change(self._action, self._path, hunks, self._move_to))
        self._hunks, self._action, self._move_to = [], None, None


def _wrong(number: int, line: str, why: str) -> InvalidArguments:
    return InvalidArguments(
        f"line {number} of the patch cannot be used, {why}: {shown(line, max_chars=80)!r}", line=number
    )

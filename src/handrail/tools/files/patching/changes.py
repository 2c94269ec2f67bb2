"""Read patches: unified diffs, as `diff -u`, `git diff` and models write them, and the V4A format (`*** Begin Patch`, ...)."""

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from ....errors import InvalidArguments, ToolError
from ....files.failures import shown

_HEADER = re.compile(r"\*\*\* (Update|Add|Delete|Move) File:\s*(.*?)\s*")
_MOVE_TO = re.compile(r"\*\*\* Move to:\s*(.*?)\s*")
_V4A_RANGE = re.compile(r"@@+\s*-(\d+)(?:,\d+)?\s+\+\d+(?:,\d+)?\s*@@.*")
_NO_NEWLINE = "\\ "  # "No newline at end of file", in the language of whoever made the diff
_RANGE = re.compile(r"@@+ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@.*")
_ESCAPE = re.compile(r"\\([0-7]{3}|.)")
_ESCAPED = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}
_NOWHERE = "/dev/null"


class Op(Enum):
    """What a line of a hunk does. The value is the character it starts with in a patch."""

    KEEP = " "
    DROP = "-"
    ADD = "+"


_OPS = {op.value: op for op in Op}


class Action(Enum):
    UPDATE = "update"
    ADD = "add"
    DELETE = "delete"


@dataclass(slots=True)
class Hunk:
    """One place to change. `anchors` are lines above it, `line` is where it was (from 1), if the patch says so."""

    lines: list[tuple[Op, str]] = field(default_factory=list)
    anchors: list[str] = field(default_factory=list)
    line: int | None = None
    at_end: bool = False
    # Whether the last line of the file ends with a newline afterwards; None leaves it as it is.
    final_newline: bool | None = None
    # How many lines at its end are empty without even the space of a context line.
    bare_tail: int = 0

    @property
    def old(self) -> list[str]:
        return [text for op, text in self.lines if op is not Op.ADD]

    @property
    def new(self) -> list[str]:
        return [text for op, text in self.lines if op is not Op.DROP]

    def take(self, line: str, number: int) -> Op | None:
        """Add a line of a patch. Returns what it does; None if it is not a line of the file."""
        if line.startswith(_NO_NEWLINE):  # on a dropped line the newline is new; on any other, there is none
            self.final_newline = bool(self.lines) and self.lines[-1][0] is Op.DROP
            return None
        is_bare = not line.rstrip("\r")  # models drop the space of an empty context line
        if not is_bare and line[0] not in _OPS:
            raise _wrong(number, line, "a line of a hunk starts with a space, - or +")
        op, text = (Op.KEEP, line) if is_bare else (_OPS[line[0]], line[1:])
        self.lines.append((op, text))
        self.bare_tail = self.bare_tail + 1 if is_bare else 0
        return op

    def trim(self) -> None:
        """Drop empty lines at the end that are the writer's spacing, not lines of the file."""
        if self.bare_tail:
            del self.lines[-self.bare_tail :]


class Change(NamedTuple):
    """What happens to one file. An added file's content is the one hunk's added lines."""

    action: Action
    path: str
    hunks: tuple[Hunk, ...] = ()
    move_to: str | None = None


def parse_v4a(text: str) -> list[Change]:
    """The changes in order. Raises InvalidArguments with the number of the line that cannot be understood."""
    reader = _V4aReader()
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() == "*** End Patch":
            break
        reader.take(number, line)
    reader.close()
    if not reader.changes:
        raise InvalidArguments("the patch names no file; begin a file with `*** Update File: <path>`")
    return reader.changes


class _V4aReader:
    def __init__(self) -> None:
        self.changes: list[Change] = []
        self._action: Action | None = None
        self._path = ""
        self._move_to: str | None = None
        self._hunks: list[Hunk] = []

    def take(self, number: int, line: str) -> None:
        if header := _HEADER.fullmatch(line):
            self.close()
            self._open(number, header[1], header[2])
        elif move := _MOVE_TO.fullmatch(line):
            if self._action is not Action.UPDATE or self._hunks:
                raise _wrong(number, line, "`*** Move to:` comes right after `*** Update File:`")
            self._move_to = move[1]
        elif self._action is None:
            if line.startswith(("+", "-", "@@")):
                raise _wrong(number, line, "a `*** Update File: <path>` line must come before it")
        elif self._action is Action.DELETE:
            if line.strip():
                raise _wrong(number, line, "nothing follows `*** Delete File:`")
        else:
            (self._added if self._action is Action.ADD else self._updated)(number, line)

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

    def _added(self, number: int, line: str) -> None:
        if not self._hunks:
            self._hunks.append(Hunk())
        if line.startswith(("+", _NO_NEWLINE)):
            self._hunks[0].take(line, number)
        elif line.strip() and not line.startswith("@@"):
            raise _wrong(number, line, "every line of an added file starts with +")

    def _updated(self, number: int, line: str) -> None:
        if line.startswith("@@"):
            self._heading(line)
            return
        if not self._hunks:
            if not line.strip():
                return
            self._hunks.append(Hunk())
        hunk = self._hunks[-1]
        if line.strip() == "*** End of File":
            hunk.at_end = True
        elif line.strip() or not hunk.at_end:
            hunk.take(line, number)

    def _heading(self, line: str) -> None:
        previous = self._hunks[-1] if self._hunks else None
        if previous is None or previous.lines:
            previous = Hunk()
            self._hunks.append(previous)
        if spot := _V4A_RANGE.fullmatch(line.rstrip()):
            previous.line = int(spot[1])
        elif anchor := line.strip("@ \t\r"):
            previous.anchors.append(anchor)

    def close(self) -> None:
        if self._action is None:
            return
        for hunk in self._hunks:
            if not hunk.at_end:
                hunk.trim()
        hunks = tuple(hunk for hunk in self._hunks if hunk.lines)
        if self._action is Action.UPDATE and not hunks and not self._move_to:
            raise InvalidArguments(f"{shown(self._path)} has no hunk: nothing in the patch says what to change")
        self.changes.append(Change(self._action, self._path, hunks, self._move_to))
        self._hunks, self._action, self._move_to = [], None, None


def _wrong(number: int, line: str, why: str) -> InvalidArguments:
    what = f"line {number} of the patch cannot be used, {why}"
    return InvalidArguments(f"{what}: {shown(line, max_chars=80)!r}", line=number)


class _Miscounted(Exception):
    """The numbers in a hunk's heading do not fit its lines."""


@dataclass(slots=True)
class _Section:
    """One file of the diff, while it is being read."""

    old: str | None = None
    new: str | None = None
    hunks: list[Hunk] = field(default_factory=list)
    renamed: bool = False
    prefixed: bool = False
    beyond_text: str = ""

    def close(self) -> Change | None:
        if not self.hunks and self.beyond_text:
            raise InvalidArguments(f"the diff changes more than text, which cannot be applied: {self.beyond_text}")
        if not self.hunks and not self.renamed:
            return None
        old, new = self.old, self.new
        # git puts a/ and b/ before the paths; only both together are taken for that.
        if self.prefixed and (old is None or old.startswith("a/")) and (new is None or new.startswith("b/")):
            old, new = old and old[2:], new and new[2:]
        if old is None and new is None:
            raise InvalidArguments("the diff names no file; begin it with `--- <path>` and `+++ <path>`, or give path")
        if old is None or new is None:
            action = Action.ADD if old is None else Action.DELETE
            return Change(action, str(new if old is None else old), tuple(self.hunks))
        return Change(Action.UPDATE, old, tuple(self.hunks), new if new != old else None)


class _UnifiedReader:
    """`path` names the file of a diff that has no header of its own."""

    def __init__(self, text: str, path: str | None, *, trust_counts: bool) -> None:
        self._lines, self._path, self._trust_counts = text.split("\n"), path, trust_counts
        self._at = 0
        self._section = _Section(path, path)
        self._changes: list[Change] = []

    def read(self) -> list[Change]:
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if self._starts_file():
                if self._section.hunks:
                    self._next_section()
                old, new = _path_in(line[4:]), _path_in(self._lines[self._at + 1][4:])
                self._section.old, self._section.new, self._section.prefixed = old, new, True
                self._at += 2
            elif line.startswith("@@"):
                self._hunk(line)
            else:
                self._other(line)
                self._at += 1
        self._next_section()
        if not self._changes:
            raise InvalidArguments("the diff has no hunk: a hunk starts with a line such as `@@ -1,3 +1,4 @@`")
        return self._changes

    def _starts_file(self) -> bool:
        following = self._lines[self._at + 1] if self._at + 1 < len(self._lines) else ""
        return self._lines[self._at].startswith("--- ") and following.startswith("+++ ")

    def _other(self, line: str) -> None:
        """A line outside of the hunks: of git's headers only renames matter."""
        if line.startswith("diff --git "):
            self._next_section()
        elif line.startswith("rename from "):
            self._section.old, self._section.renamed = _path_in(line[12:]), True
        elif line.startswith("rename to "):
            self._section.new = _path_in(line[10:])
        elif line.startswith(("new file mode", "deleted file mode", "old mode", "Binary files ", "GIT binary patch")):
            self._section.beyond_text = shown(line)
        elif self._section.hunks and line.strip() and self._trust_counts and line[0] in "+- " and line != "-- ":
            raise _Miscounted

    def _next_section(self) -> None:
        if (change := self._section.close()) is not None:
            self._changes.append(change)
        self._section = _Section(self._path, self._path)

    def _hunk(self, heading: str) -> None:
        spot = _RANGE.fullmatch(heading.rstrip())
        hunk, counted = Hunk(line=int(spot[1]) if spot else None), self._trust_counts and spot is not None
        old_left, new_left = (int(spot[2] or 1), int(spot[4] or 1)) if spot else (-1, -1)
        self._at += 1
        while self._at < len(self._lines):
            line = self._lines[self._at]
            is_next = self._starts_file() or line.startswith(("@@", "diff --git "))
            is_over = old_left <= 0 and new_left <= 0 if counted else is_next
            if is_over and not line.startswith(_NO_NEWLINE):
                break
            try:
                op = hunk.take(line, self._at + 1)
            except InvalidArguments:
                if counted:
                    raise _Miscounted from None
                raise
            old_left -= op in (Op.KEEP, Op.DROP)
            new_left -= op in (Op.KEEP, Op.ADD)
            self._at += 1
        if counted and (old_left or new_left):
            raise _Miscounted
        if not counted:
            hunk.trim()
        self._section.hunks.append(hunk)


def _path_in(text: str) -> str | None:
    """The path of a header line: without the date that `diff` adds, and without git's quotes."""
    name = text.split("\t")[0].rstrip("\r ")
    if name.startswith('"') and name.endswith('"') and len(name) > 1:
        name = _ESCAPE.sub(_unescaped, name[1:-1]).encode("latin-1", "replace").decode("utf-8", "replace")
    return None if name == _NOWHERE else name


def _unescaped(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 8) & 0xFF) if len(escape[1]) > 1 else _ESCAPED.get(escape[1], escape[1])


def parse_patch(text: str, *, path: str | None = None) -> list[Change]:
    """The changes in order. `path` names the file of a patch that names none. Raises InvalidArguments."""
    text = _unwrapped(text)
    if re.search(r"(?m)^\*\*\* (?:Begin Patch|(?:Update|Add|Delete|Move) File:)", text):
        return parse_v4a(text)
    if re.search(r"(?m)^(?:@@ |--- .*\n\+\+\+ |rename from )", text):
        try:
            return _UnifiedReader(text, path, trust_counts=True).read()
        except _Miscounted:  # models miscount: then a hunk ends where the next header begins
            return _UnifiedReader(text, path, trust_counts=False).read()
    if path is not None and any(line[:1] in ("+", "-") for line in text.split("\n")):
        return parse_v4a(f"*** Update File: {path}\n{text}")
    raise InvalidArguments(
        "patch is neither a V4A patch (`*** Begin Patch`, `*** Update File: <path>`, hunks, `*** End Patch`) "
        "nor a unified diff (`--- a/<path>`, `+++ b/<path>`, `@@ -1,3 +1,4 @@`)"
    )


def paths_of(text: str, *, path: str | None = None) -> list[str] | None:
    """Every path that a patch reads or writes; None when it cannot be understood."""
    try:
        changes = parse_patch(text, path=path)
    except ToolError:
        return None
    return [name for change in changes for name in (change.path, change.move_to) if name]


def _unwrapped(text: str) -> str:
    """Without what a transport or a chat puts around it: a code fence, CRLF on every line."""
    lines = text.split("\n")
    if len(lines) > 1 and all(line.endswith("\r") for line in lines[:-1]):
        lines = [line.removesuffix("\r") for line in lines]
    while lines and not lines[0].strip():
        lines.pop(0)
    if lines and lines[0].startswith("```"):
        closing = next((at for at in range(len(lines) - 1, 0, -1) if lines[at].strip() == "```"), len(lines))
        lines = lines[1:closing]
    return "\n".join(lines)

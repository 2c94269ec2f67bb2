"""Read unified diffs, as `diff -u` and `git diff` write them, and as models write them from memory."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ....errors import InvalidArguments
from ....files.failures import shown
from .changes import Action, Change, Hunk, Op

_RANGE = re.compile(r"@@+ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@.*")
_ESCAPE = re.compile(r"\\([0-7]{3}|.)")
_ESCAPED = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}
_OPS = {op.value: op for op in Op}
_NOWHERE = "/dev/null"


def is_unified(text: str) -> bool:
    return re.search(r"(?m)^(?:@@ |--- .*\n\+\+\+ |rename from )", text) is not None


def parse_unified(text: str, *, path: str | None = None) -> list[Change]:
    """The changes in order. `path` names the file of a diff that has no header of its own."""
    lines = text.split("\n")
    try:
        return _Reader(lines, path, trust_counts=True).read()
    except _Miscounted:
        # Models miscount. Then a hunk ends where the next header begins.
        return _Reader(lines, path, trust_counts=False).read()


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
            raise InvalidArguments(
                f"the diff changes more than lines of text, which cannot be applied: {self.beyond_text}"
            )
        if not self.hunks and not self.renamed:
            return None
        old, new = _without_prefixes(self.old, self.new) if self.prefixed else (self.old, self.new)
        if old is None and new is None:
            raise InvalidArguments(
                "the diff names no file; begin it with `--- <path>` and `+++ <path>` lines, or give path"
            )
        if old is None or new is None:
            action = Action.ADD if old is None else Action.DELETE
            return Change(action, str(new if old is None else old), tuple(self.hunks))
        return Change(Action.UPDATE, old, tuple(self.hunks), new if new != old else None)


class _Reader:
    def __init__(self, lines: list[str], path: str | None, *, trust_counts: bool) -> None:
        self._lines, self._path, self._trust_counts = lines, path, trust_counts
        self._at = 0
        self._section = _Section(path, path)
        self._changes: list[Change] = []

    def read(self) -> list[Change]:
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if self._starts_file():
                self._file(line, self._lines[self._at + 1])
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

    def _file(self, old: str, new: str) -> None:
        if self._section.hunks:
            self._next_section()
        self._section.old, self._section.new, self._section.prefixed = _path_in(old[4:]), _path_in(new[4:]), True

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
        change = self._section.close()
        if change is not None:
            self._changes.append(change)
        self._section = _Section(self._path, self._path)

    def _hunk(self, heading: str) -> None:
        spot = _RANGE.fullmatch(heading.rstrip())
        old_left, new_left = (int(spot[2] or 1), int(spot[4] or 1)) if spot else (-1, -1)
        counted = self._trust_counts and spot is not None
        lines: list[tuple[Op, str]] = []
        final_newline: bool | None = None
        self._at += 1
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith("\\"):
                # The mark on a dropped line says that the newline is new; on any other, that there is none.
                final_newline = bool(lines) and lines[-1][0] is Op.DROP
            elif (counted and old_left <= 0 and new_left <= 0) or (not counted and self._ends_hunk(line)):
                break
            else:
                op, text = self._hunk_line(line, counted=counted)
                lines.append((op, text))
                old_left -= op is not Op.ADD
                new_left -= op is not Op.DROP
            self._at += 1
        if counted and (old_left or new_left):
            raise _Miscounted
        if not counted:
            while lines and lines[-1] == (Op.KEEP, ""):  # the end of the text, not a line of the file
                lines.pop()
        self._section.hunks.append(Hunk(tuple(lines), line=int(spot[1]) if spot else None, final_newline=final_newline))

    def _ends_hunk(self, line: str) -> bool:
        return self._starts_file() or line.startswith(("@@", "diff --git "))

    def _hunk_line(self, line: str, *, counted: bool) -> tuple[Op, str]:
        if not line.rstrip("\r"):
            return Op.KEEP, line
        op = _OPS.get(line[0])
        if op is not None:
            return op, line[1:]
        if counted:
            raise _Miscounted
        raise InvalidArguments(
            f"line {self._at + 1} of the diff cannot be used, a line of a hunk starts with a space, - or +: "
            f"{shown(line, max_chars=80)!r}",
            line=self._at + 1,
        )


def _path_in(text: str) -> str | None:
    """The path of a header line: without the date that `diff` adds, and without git's quotes."""
    name = text.split("\t")[0].rstrip("\r ")
    if name.startswith('"') and name.endswith('"') and len(name) > 1:
        name = _ESCAPE.sub(_unescaped, name[1:-1]).encode("latin-1", "replace").decode("utf-8", "replace")
    return None if name == _NOWHERE else name


def _unescaped(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 8) & 0xFF) if len(escape[1]) > 1 else _ESCAPED.get(escape[1], escape[1])


def _without_prefixes(old: str | None, new: str | None) -> tuple[str | None, str | None]:
    """git puts a/ and b/ before the paths; only both together are taken for that."""
    if (old is None or old.startswith("a/")) and (new is None or new.startswith("b/")):
        return old and old[2:], new and new[2:]
    return old, new

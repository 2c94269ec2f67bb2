"""Work out what a list of changes makes of the files, before anything is written; then write all of them or none."""

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import partial
from typing import NamedTuple

from ....errors import InvalidArguments, ToolError, ToolFailed
from ....files.content import Current, ReadTracker, check_unchanged, editable, load, missing
from ....files.failures import shown
from ....files.text import Text, bounded_diff, line_endings, with_crlf
from ....protocols import Files, FileStat
from .changes import Action, Change, Hunk, Op
from .place import MAX_PLACES_NAMED, Edit, Haystack, How, Placer, edit_at, folded, misfit

Diff = Callable[..., str]
# Beyond that, comparing every line with every other takes longer than it is worth.
_MAX_COMPARED_FULLY = 1_000


class Step(NamedTuple):
    """One file: `data` is its new content, None to remove it; `before` is what it was, None when it was not there. `name` is
    the path as it was given: a removal removes that name, not the target of a link."""

    path: str
    name: str
    before: Current | None
    data: bytes | None
    mode: int | None = None


def commit(files: Files, steps: Sequence[Step]) -> dict[str, FileStat]:
    """Write files, then remove files. After a failure everything is undone."""
    for step in steps:  # another program may have written between our reading and writing
        now = files.stat(step.path)
        if (now and now.version) != (step.before and step.before.stat.version):
            raise ToolFailed(f"{shown(step.path)} was just changed by another program; nothing was written, try again")
    done: list[tuple[Step, list[str]]] = []
    written: dict[str, FileStat] = {}
    try:
        for step in sorted(steps, key=lambda step: step.data is None):
            done.append((step, _missing_folders(files, step)))
            if step.data is None:
                files.remove(step.name)
            else:
                written[step.path] = files.write(step.path, step.data, mode=step.mode)
    except BaseException as error:
        if stuck := _undo(files, done):
            raise ToolFailed(
                f"{error}. What was written before could not all be undone: {', '.join(map(shown, stuck))}",
                not_restored=[shown(path) for path in stuck],
            ) from error
        if isinstance(error, ToolError):
            raise type(error)(f"{error}. Nothing was written.", **error.details) from None
        raise
    return written


def _missing_folders(files: Files, step: Step) -> list[str]:
    """The folders that writing would make, innermost first."""
    missing: list[str] = []
    folder = step.path.rpartition("/")[0]
    while step.data is not None and folder and files.stat(folder) is None:
        missing.append(folder)
        folder = folder.rpartition("/")[0]
    return missing


def _undo(files: Files, done: Sequence[tuple[Step, list[str]]]) -> list[str]:
    """Restore everything, last first. Returns the paths for which that failed."""
    stuck: list[str] = []
    for step, folders in reversed(done):
        try:
            now = files.stat(step.path)
            if step.before is None:
                for path in (step.path, *folders):
                    if files.stat(path) is not None:
                        files.remove(path)
            elif step.before.data is not None and (now is None or now.version != step.before.stat.version):
                files.write(step.path, step.before.data, mode=step.before.stat.mode)
        except ToolError:
            stuck.append(step.path)
    return stuck


@dataclass(slots=True)
class _File:
    """A file as the changes so far leave it: `body` is None when it is not there."""

    name: str
    before: Current | None
    text: Text | None
    body: str | None
    mode: int | None = None
    touched: bool = False


class Applied(NamedTuple):
    """The new text, and for each hunk its line and how it matched."""

    body: str
    hunks: tuple[tuple[int, How], ...]


class Done(NamedTuple):
    action: str
    path: str
    hunks: tuple[tuple[int, How], ...] = ()
    moved_to: str | None = None
    diff: str = ""


@dataclass(slots=True)
class Plan:
    """Changes build on each other: a file may be added by one and updated by the next."""

    files: Files
    reads: ReadTracker
    task_id: str | None
    diff: Diff = bounded_diff
    done: list[Done] = field(default_factory=list)
    _known: dict[str, _File] = field(default_factory=dict)

    def change(self, change: Change) -> None:
        """Raises ToolFailed when the change cannot be made. Nothing has been written then."""
        if change.action is Action.ADD:
            self._add(change)
        elif change.action is Action.DELETE:
            self._delete(change)
        else:
            make = partial(apply_hunks, hunks=change.hunks, path=change.path)
            self.edit(change.path, make, move_to=change.move_to)

    def edit(self, path: str, make: Callable[[str], Applied], *, move_to: str | None = None) -> None:
        """Change the text of a file by `make`, and move it if `move_to` says so."""
        resolved, file = self._there(path)
        text = file.text if file.text is not None or file.before is None else editable(file.before)
        applied = make(file.body if file.body is not None else "")
        before, file.text = file.body or "", text
        target = self.files.resolve(move_to) if move_to else resolved
        diff = self.diff(before, applied.body, path=resolved, to_path=target)
        if target == resolved:
            file.body, file.touched = applied.body, True
            self.done.append(Done("update", resolved, applied.hunks, diff=diff))
            return
        self._move(resolved, file, target, applied.body)
        action = "update" if applied.hunks else "move"
        self.done.append(Done(action, resolved, applied.hunks, moved_to=target, diff=diff))

    def steps(self) -> list[Step]:
        """What is to be written and removed. Raises ToolFailed for text that a file's encoding cannot carry."""
        return [
            Step(path, file.name, file.before, _encoded(path, file), file.mode)
            for path, file in self._known.items()
            if file.touched and (file.body is not None or file.before is not None)
        ]

    def _add(self, change: Change) -> None:
        resolved, file = self._file(change.path)
        if file.body is not None or (file.before is not None and not file.touched):
            raise ToolFailed(f"{shown(change.path)} cannot be added: it exists; update it. Nothing was written.")
        file.body, file.text, file.touched = new_content(change.hunks), Text(""), True
        self.done.append(Done("add", resolved, diff=self.diff("", file.body, path=resolved)))

    def _delete(self, change: Change) -> None:
        resolved, file = self._there(change.path)
        if file.before is not None and file.before.data is None:
            raise ToolFailed(f"{shown(change.path)} is too large to be deleted by a patch. Nothing was written.")
        if change.hunks and apply_hunks(file.body or "", change.hunks, path=change.path).body:
            raise ToolFailed(f"{shown(change.path)} holds more than the diff deletes. Nothing was written.")
        lines = (file.body or "").count("\n")
        file.body, file.touched = None, True
        diff = f"--- {shown(resolved)}\n+++ /dev/null\n[{lines} lines deleted]"
        self.done.append(Done("delete", resolved, diff=diff))

    def _move(self, resolved: str, file: _File, target: str, body: str) -> None:
        _, other = self._file(target)
        if other.body is not None or (other.before is not None and not other.touched):
            raise ToolFailed(f"{shown(resolved)} cannot be moved to {shown(target)}: that exists. Nothing was written.")
        other.body, other.text, other.touched = body, file.text, True
        other.mode = file.before.stat.mode if file.before else file.mode
        file.body, file.touched = None, True

    def _there(self, path: str) -> tuple[str, _File]:
        """A file that must exist at this point of the changes."""
        resolved, file = self._file(path)
        if file.touched and file.body is None:
            raise ToolFailed(f"{shown(path)} is gone by then: an earlier part of the patch removes it")
        if file.before is None and not file.touched:
            raise missing(self.files, path)
        return resolved, file

    def _file(self, path: str) -> tuple[str, _File]:
        resolved = self.files.resolve(path)
        if (file := self._known.get(resolved)) is None:
            if (current := load(self.files, resolved)) is not None:
                check_unchanged(self.reads, self.task_id, current)
            text = current.text if current else None
            # A link of another name is not what would be removed. Otherwise no link is followed from here on.
            name = resolved if path.rpartition("/")[2] == resolved.rpartition("/")[2] else path
            file = self._known[resolved] = _File(name, current, text, text.body if text else None)
        return resolved, file


def _encoded(path: str, file: _File) -> bytes | None:
    if file.body is None:
        return None
    try:
        return (file.text or Text("")).encode(file.body)
    except UnicodeEncodeError as error:
        character = file.body[error.start] if error.start < len(file.body) else ""
        codec = file.text.encoding if file.text else "utf-8"
        raise ToolFailed(f"{shown(path)} is {codec}, which has no {character!r}. Nothing was written.") from None


def apply_hunks(body: str, hunks: Sequence[Hunk], *, path: str) -> Applied:
    """Raises ToolFailed when a hunk does not fit, or fits in several places."""
    if crlf := line_endings(body) == "crlf":
        body = body.replace("\r\n", "\n")
        hunks = [replace(hunk, lines=[(op, text.removesuffix("\r")) for op, text in hunk.lines]) for hunk in hunks]
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
    if crlf := line_endings(body) == "crlf":
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
    if not (starts := [start for start, _ in spans]):
        return None
    line_ends = [found.start() for found in re.finditer("\n", body)]
    places = [bisect_left(line_ends, start) + 1 for start in starts]
    _check_one(places, replace_all=replace_all, path=path)
    ends = [0, *(end for _, end in spans)]
    kept = [body[end:start] for end, start in zip(ends, [*starts, len(body)], strict=True)]
    return Applied(new.join(kept), tuple((line, how) for line in places))


def _found(haystack: str, needle: str) -> list[tuple[int, int]]:
    """Where it is, without overlaps: start and end."""
    return [found.span() for found in re.finditer(re.escape(needle), haystack)] if needle.strip() else []


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
    named = ", ".join(map(str, lines[:MAX_PLACES_NAMED])) + (" and more" if count > MAX_PLACES_NAMED else "")
    raise ToolFailed(
        f"old_string is in {shown(path)} {count} times, at lines {named}: add text around it until it is there once, "
        "or set replace_all. Nothing was written.",
        path=shown(path),
        lines=lines[:MAX_PLACES_NAMED],
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
    return Hunk(lines)


def _lines(body: str) -> tuple[list[str], bool]:
    """The lines without their ends, and whether the last has one. A file without lines will end with one."""
    lines = body.split("\n")
    return (lines, False) if lines[-1] else (lines[:-1], True)


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

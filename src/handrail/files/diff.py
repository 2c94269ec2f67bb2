"""Show a change as a unified diff of bounded length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import unified_diff

from ..base.safe_text import well_formed
from .text import split_lines

MAX_DIFF_CHARS = 8_000
MAX_COMPARED_LINES = 3_000
_MAX_LINE_CHARS = 500


def bounded_diff(before: str, after: str, *, path: str, to_path: str = "") -> str:
    """The diff of two texts, empty when they are equal. A long one is cut, with a line that says how much is missing."""
    old, new = split_lines(before), split_lines(after)
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    changed_old, changed_new = len(old) - start - end, len(new) - start - end
    if max(changed_old, changed_new) > MAX_COMPARED_LINES:  # comparing costs the product of the two
        return f"[from line {start + 1} on, {changed_old} lines were replaced by {changed_new}: too long to show]"
    lines = [line for piece in unified_diff(old, new, path, to_path or path) for line in _ended(piece)]
    return well_formed(_bounded(lines))


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    count = 0
    for left, right in zip(old, new, strict=False):
        if left != right:
            break
        count += 1
    return count


def _ended(line: str) -> Iterable[str]:
    return (line[:-1],) if line.endswith("\n") else (line, "\\ No newline at end of file")


def diff_to_approve(before: str, after: str, *, path: str, to_path: str = "", is_new: bool = False) -> str:
    """The diff for a person who is to say yes to it: all of it, line by line. One too long to be worked out shows what goes
    and what comes in one block."""
    old, new = split_lines(before), split_lines(after)
    names = ("/dev/null" if is_new else path, to_path or path)
    if max(len(old), len(new)) <= MAX_COMPARED_LINES:
        lines = [line for piece in unified_diff(old, new, *names) for line in _ended(piece)]
    else:
        start = _common(old, new)
        end = _common(old[start:][::-1], new[start:][::-1])
        gone, come = old[start : len(old) - end], new[start : len(new) - end]
        place = f"@@ -{start + 1},{len(gone)} +{start + 1},{len(come)} @@"
        marked = [*(f"-{line}" for line in gone), *(f"+{line}" for line in come)]
        body = [line for piece in marked for line in _ended(piece)]
        lines = [f"--- {names[0]}", f"+++ {names[1]}", place, *body] if marked else []
    return well_formed("\n".join(lines))


def _bounded(lines: Sequence[str]) -> str:
    kept: list[str] = []
    left = MAX_DIFF_CHARS
    for number, line in enumerate(lines):
        long = len(line) - _MAX_LINE_CHARS
        text = line if long <= 0 else f"{line[:_MAX_LINE_CHARS]} [{long} more characters]"
        left -= len(text) + 1
        if left < 0:
            kept.append(f"[{len(lines) - number} more lines of diff]")
            break
        kept.append(text)
    return "\n".join(kept)

"""A unified diff as a person reads it: line numbers, the colours of its language, and the words that changed marked."""

import difflib
import re
from collections.abc import Iterator

from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from ...approval.questions import first_of_diff
from ..output import visible

_PLACE = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_LIGHT_THEMES = ("ansi_light", "default")
# Behind what changed, and behind the changed words of it, in a dark and in a light theme.
_BACKGROUND = {"+": ("on #12351f", "on #dafbe1"), "-": ("on #3d1518", "on #ffebe9")}
_MARKED = {"+": ("on #1f6b38", "on #aceebb"), "-": ("on #7a2329", "on #ffc1ba")}
_SIGNS = {"+": "green", "-": "red", " ": "dim"}
_MAX_WORDS = 400
_NUMBER_COLUMNS = 7  # with the sign


def diff_lines(diff: str, path: str = "", most: int = 40, *, theme: str = "ansi_dark") -> Iterator[Text]:
    """The lines of a diff, at most so many; `path` tells the language."""
    old = new = 1
    light = theme in _LIGHT_THEMES
    lines = [line for line in visible(diff).splitlines() if not line.startswith(("--- ", "+++ ", "\\ "))]
    colour = _Highlighter(path, theme)
    partners = _partners(lines)
    shown_lines = set(first_of_diff([line.startswith("-") for line in lines], most))
    for number, line in enumerate(lines):
        if place := _PLACE.match(line):
            old, new = int(place[1]), int(place[2])
            if number in shown_lines and number:
                yield Text("⋯", "dim")
            continue
        sign, code = line[:1] or " ", line[1:]
        shown = old if sign == "-" else new
        old, new = old + (sign != "+"), new + (sign != "-")
        if number not in shown_lines:
            continue
        text = colour(code)
        if sign in _BACKGROUND:
            text.stylize(_BACKGROUND[sign][light])
            for start, end in _changed_words(code, partners.get(number, "")):
                text.stylize(_MARKED[sign][light], start, end)
        yield Text.assemble((f"{shown:4} ", "dim"), (f"{sign} ", _SIGNS.get(sign, "dim")), text)
    if len(lines) > most:
        yield Text(f"… {len(lines) - most} more lines", "dim")


def diff_rows(diff: str, path: str, most: int, *, theme: str) -> Iterator[Table]:
    """The same to be printed: a line that is too long goes on below its code, not below its number."""
    for line in diff_lines(diff, path, most, theme=theme):
        row = Table.grid()
        row.add_row(line[:_NUMBER_COLUMNS], line[_NUMBER_COLUMNS:])
        yield row


class _Highlighter:
    """Colours one line of code; plain text for a language that is not known."""

    def __init__(self, path: str, theme: str) -> None:
        lexer = Syntax.guess_lexer(path) if path else "default"
        self._syntax = None if lexer == "default" else Syntax("", lexer, theme=theme)

    def __call__(self, code: str) -> Text:
        if self._syntax is None:
            return Text(code)
        text = self._syntax.highlight(code)
        text.rstrip()
        return text if text.plain == code else Text(code)


def _partners(lines: list[str]) -> dict[int, str]:
    """Of lines that were replaced one by one: the other version of each."""
    found: dict[int, str] = {}
    number = 0
    while number < len(lines):
        first = number
        while number < len(lines) and lines[number].startswith("-"):
            number += 1
        middle = number
        while number < len(lines) and lines[number].startswith("+"):
            number += 1
        if middle - first == number - middle > 0:
            for removed, added in zip(range(first, middle), range(middle, number), strict=True):
                found[removed], found[added] = lines[added][1:], lines[removed][1:]
        number = max(number, first + 1)
    return found


def _changed_words(code: str, other: str) -> Iterator[tuple[int, int]]:
    """Where a line differs from its other version; nothing when most of it does."""
    mine, theirs = _WORDS.findall(code), _WORDS.findall(other)
    if not other or len(mine) + len(theirs) > _MAX_WORDS:
        return
    matcher = difflib.SequenceMatcher(None, mine, theirs, autojunk=False)
    if matcher.ratio() < 0.5:
        return
    starts = [0]
    for word in mine:
        starts.append(starts[-1] + len(word))
    for kind, begin, end, _, _ in matcher.get_opcodes():
        if kind != "equal" and end > begin:
            yield starts[begin], starts[end]

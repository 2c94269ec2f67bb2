"""Show what will run: every character visible, secrets hidden, the dangerous parts marked, long texts cut.

The marks are positions in the original text and stay correct through escaping, hiding and cutting. What could be more than a
secret (`--token $(rm -rf x)`) is never hidden: the user must see what runs.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ..base.safe_text import secret_places, secret_values
from ..judge.values.data_files import read_tables

Span = tuple[int, int]

HIDDEN = "[secret]"
_NAME = r"[\w-]*(?:api[_-]?key|access[_-]?key|private[_-]?key|token|secret|passw(?:or)?d|passphrase|credential)s?"
# NAME=value, --name=value, --name value, "name": "value"; -u user:password; and mysql's -ppassword.
_NAMED = (
    rf"(?i)(?:\b{_NAME}=|--{_NAME}[= ]|[\"']{_NAME}[\"']\s*:\s*)[\"']?([^\s\"']+)"
    r"|(?: -u|--user)[= ]?[\"']?[^\s:\"'/]+:([^\s\"'@]+)"
    r"|\b(?:mysql\w*|mariadb\w*)\b[^|;&\n]*? -p([^\s\"']+)"
)
# Every text in which a pattern, here or in `safe_text`, can match contains one of these.
_HINT = re.compile(
    "key|token|secret|passw|passphrase|credential|bearer|basic|://| -u| -p|--user|[spr]k-|gh[pousr]_|github_pat_|glpat-|xox|hf_"
    "|akia|aiza|eyj|-----begin"
)
_RUNS = re.compile(r"[$`;|&<>(){}\\]")


def secret_spans(text: str, values: tuple[str, ...] | None = None) -> list[Span]:
    """The secrets in a text, in order, none inside another. `values`: of this process, where they are known already."""
    values = secret_values() if values is None else values
    if not _HINT.search(text.lower()) and not any(value in text for value in values):
        return []  # most commands have nothing like a secret and must not wait for the patterns
    named = [match.span(match.lastindex or 0) for match in re.finditer(_NAMED, text)]
    return _merged(span for span in (*named, *secret_places(text, values)) if not _RUNS.search(text, *span))


def without_secrets(
    text: str, spans: Iterable[Span] = (), *, values: tuple[str, ...] | None = None
) -> tuple[str, list[Span]]:
    """The text with its secrets replaced, and the places in it that `spans` have become."""
    secrets = secret_spans(text, values)
    if not secrets:
        return text, list(spans)
    parts, position = [], 0
    for start, end in secrets:
        parts += [text[position:start], HIDDEN]
        position = end
    moved = [(_moved(start, secrets), _moved(end, secrets, end=True)) for start, end in spans]
    return "".join([*parts, text[position:]]), moved


def _moved(place: int, secrets: list[Span], *, end: bool = False) -> int:
    shift = 0
    for start, stop in secrets:
        if place >= stop:
            shift += len(HIDDEN) - (stop - start)
        elif place > start:  # inside a hidden part: all of that is marked
            return start + shift + (len(HIDDEN) if end else 0)
    return place + shift


MAX_CHARS = 1200
# Of a long text: its start, its end, and the surroundings of each mark.
_HEAD, _TAIL, _AROUND, _MAX_OF_A_MARK = 200, 100, 60, 200
_MAX_MARKS_IN_FULL, _MAX_MARKS = 12, 60


class Piece(NamedTuple):
    """A part of what is shown. `marked`: dangerous. `ours`: our remark, not the command's text."""

    text: str
    marked: bool = False
    ours: bool = False


class Line(NamedTuple):
    """One line for a terminal: its pieces, and a line to put below it that points at the marks ('' if there are none)."""

    pieces: tuple[Piece, ...]
    pointers: str


def pieces(text: str, spans: Iterable[Span] = (), *, max_chars: int = MAX_CHARS, tab: str = "\\t") -> list[Piece]:
    """The text as it is shown. Newlines stay; no other control character reaches the terminal. `tab` stands for a tab."""
    marks = _merged((max(0, start), min(end, len(text))) for start, end in spans)
    shown = _Shown(text, marks[:_MAX_MARKS], tab)
    position = 0
    for start, end in _kept(text, marks[:_MAX_MARKS], max_chars):
        if start > position:
            shown.leave_out(start - position)
        shown.add(start, end)
        position = end
    if position < len(text):
        shown.leave_out(len(text) - position)
    if len(marks) > _MAX_MARKS:
        shown.pieces.append(Piece(f" … and {len(marks) - _MAX_MARKS} more dangerous parts … ", marked=True, ours=True))
    return shown.pieces


def visible(text: str, *, max_chars: int = MAX_CHARS) -> str:
    """The same on one line and without marks, for lists and logs."""
    return "".join(piece.text for piece in pieces(text, max_chars=max_chars)).replace("\n", "\\n")


def lines(text: str, spans: Iterable[Span] = (), *, width: int) -> list[Line]:
    """The text in lines of at most so many columns, each with pointers at what is marked in it."""
    return wrapped(pieces(text, spans), width=width)


def wrapped(shown: Iterable[Piece], *, width: int) -> list[Line]:
    """Pieces in lines of at most so many columns."""
    found: list[Line] = []
    current: list[Piece] = []
    column = 0

    def finish() -> None:
        nonlocal current, column
        under = "".join(("^" if piece.marked else " ") * sum(map(columns, piece.text)) for piece in current)
        found.append(Line(tuple(current), under.rstrip()))
        current, column = [], 0

    for piece in shown:
        run = ""
        for character in piece.text:
            if character == "\n" or column + columns(character) > width:
                if run:
                    current.append(piece._replace(text=run))
                run = ""
                finish()
                if character == "\n":
                    continue
            run += character
            column += columns(character)
        if run:
            current.append(piece._replace(text=run))
    finish()
    return found


class _Shown:
    """Collects pieces, joining those that look the same."""

    def __init__(self, text: str, marks: Sequence[Span], tab: str) -> None:
        self.pieces: list[Piece] = []
        self._text, self._marks, self._tab = text, marks, tab
        self._secrets = secret_spans(text)
        self._hidden = set(hidden(text))

    def leave_out(self, count: int) -> None:
        self._put(f" … {count:,} characters left out … ", marked=False, ours=True)

    def add(self, start: int, end: int) -> None:
        position = start
        while position < end:
            marked = any(first <= position < last for first, last in self._marks)
            secret = next((span for span in self._secrets if span[0] <= position < span[1]), None)
            character = self._text[position]
            if secret is not None:
                self._put(HIDDEN, marked=marked, ours=True)
            elif character == "\t":
                self._put(self._tab, marked=marked, ours=self._tab == "\\t")
            elif position in self._hidden:
                code = ord(character)
                number = f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
                self._put(number, marked=marked, ours=True)
            else:
                self._put(character, marked=marked, ours=False)
            position = position + 1 if secret is None else secret[1]

    def _put(self, text: str, *, marked: bool, ours: bool) -> None:
        last = self.pieces[-1] if self.pieces else None
        if last is not None and (last.marked, last.ours) == (marked, ours):
            self.pieces[-1] = last._replace(text=last.text + text)
        else:
            self.pieces.append(Piece(text, marked, ours))


def _kept(text: str, marks: Sequence[Span], max_chars: int) -> list[Span]:
    """The parts of a text to show: all of a short one; the ends, and every mark with its surroundings, of a long one."""
    if len(text) <= max_chars:
        return [(0, len(text))]
    wanted = [(0, _HEAD), (len(text) - _TAIL, len(text))]
    for number, (start, end) in enumerate(marks):
        around = _AROUND if number < _MAX_MARKS_IN_FULL else 0
        if end - start > _MAX_OF_A_MARK:
            half = _MAX_OF_A_MARK // 2
            wanted += [(start - around, start + half), (end - half, end + around)]
        else:
            wanted.append((start - around, end + around))
    return _merged((max(0, start), min(end, len(text))) for start, end in wanted)


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def columns(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


_CHARACTERS = {kind: frozenset(listed.replace(" ", "")) for kind, listed in read_tables(__file__)[""].items()}
_LETTERS, _SIGNS, _BLANK, _FAMILIAR = (_CHARACTERS[kind] for kind in ("letters", "signs", "blank", "familiar"))
_UNSEEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def hidden(text: str) -> Iterator[int]:
    """The positions of what must be shown by number. Tab and newline are left to the caller."""
    if text.isascii():
        yield from (place.start() for place in re.finditer(r"[\x00-\x08\x0b-\x1f\x7f]", text))
        return
    for index, character in enumerate(text):
        if character not in "\t\n" and _is_hidden(text, index, character):
            yield index
    for word in re.finditer(r"[^\W\d_]{1,256}", text):
        # Foreign letters in a word that is partly Latin, or that could be read as all Latin.
        alike = [index for index, character in enumerate(word[0], word.start()) if character in _LETTERS]
        if alike and (len(alike) == len(word[0]) or any(character.isascii() for character in word[0])):
            yield from alike


def _is_hidden(text: str, index: int, character: str) -> bool:
    if character.isascii():
        return character < " " or character == "\x7f"
    category = unicodedata.category(character)
    if category in _UNSEEN_CATEGORIES or category == "Zs" or character in _BLANK:
        return True
    if category in ("Mn", "Me"):  # it changes the look of the character before it
        return index == 0 or text[index - 1].isascii() or 0xFE00 <= ord(character) <= 0xFE0F or ord(character) > 0xE0000
    if character in _SIGNS:
        return not (character == "’" and text[index - 1 : index].isalpha() and text[index + 1 : index + 2].isalpha())
    if character in _FAMILIAR:
        return False
    return unicodedata.normalize("NFKC", character).isascii()

"""The approval prompt: its text (what would run and where, why it is asked, what each answer covers), menu and input line."""

import contextlib
import re
import termios
import textwrap
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...protocols import PICKED, ActionKind, ApprovalRequest, Decision
from ..display import Line as Shown
from ..display import columns, lines, visible, wrapped
from ..questions import Kind, excerpt

ANSWERS = {name: decision for decision in Decision for name in (decision.value, decision.value[0])}
ANSWERS |= {"r": Decision.TRY, "t": Decision.TASK, **dict.fromkeys(("yes", "y"), Decision.ONCE)}
ANSWERS |= dict.fromkeys(("no", "n"), Decision.DENY)

_VERBS = {
    ActionKind.COMMAND: "wants to run",
    ActionKind.INPUT: "wants to type into a running program",
    ActionKind.CODE: "wants to run code",
    ActionKind.FILE_WRITE: "wants to write",
    ActionKind.FILE_READ: "wants to read",
    ActionKind.CONNECT: "has a program that wants to connect",
    ActionKind.TOOL: "wants to go on",
    ActionKind.HELD: "runs a program that waits for your answer",
}
_STYLES: dict[str | Kind, str] = {
    "title": "1;33",
    "marked": "1;31",
    "ours": "7",
    "dim": "2",
    "key": "1",
    # The kinds of a preview's lines.
    Kind.PLAIN: "",
    Kind.HEADER: "1",
    Kind.PLACE: "36",
    Kind.ADDED: "32",
    Kind.REMOVED: "31",
}
# How many lines of what would be written a question shows at first.
PREVIEW_LINES = 16
_WIDE = 60
VIEW = "view"


def question(
    request: ApprovalRequest, *, width: int, painted: bool, max_lines: int | None = PREVIEW_LINES, how: str = ""
) -> str:
    """The prompt without its last line, where the answer is typed. `max_lines` None shows all that would be written; `how` says
    how to see the rest."""
    return "\n".join(_lines(request, max(width, 40), painted, max_lines, how)) + "\n"


def has_more(request: ApprovalRequest, max_lines: int = PREVIEW_LINES) -> bool:
    """Whether the question with this limit leaves something out."""
    return excerpt(request, max_lines).is_cut


def allowed(request: ApprovalRequest, decision: Decision) -> str:
    """One line that repeats from the request what was allowed: what stands on the screen may have been painted over."""
    return f"Allowed {decision.value}: {visible(request.tool)}: {visible(request.text, max_chars=200)}"


def _lines(request: ApprovalRequest, width: int, painted: bool, max_lines: int | None, how: str) -> Iterator[str]:
    title = "── approval needed "
    yield ""
    yield _paint(title + "─" * (width - len(title)), "title", on=painted)
    yield from _filled(f"{_what(request)}:", width, indent="  ")
    yield from _marked(_text(request, width), painted)
    yield from _preview(request, width=width, painted=painted, max_lines=max_lines, how=how)[0]
    for rule, why in _reasons(request):
        yield from _filled(f"{why} ({rule})", width, indent="    ", first="  • ")
    if scope := _scope(request):
        yield from _filled(scope, width, indent="  ")
    yield from filter(None, [_paint(time_left(request, width), "dim", on=painted)])


def _text(request: ApprovalRequest, width: int) -> list[Shown]:
    return lines(request.text, [(concern.start, concern.end) for concern in request.concerns], width=width - 4)


def _marked(shown: Sequence[Shown], painted: bool) -> Iterator[str]:
    for line in shown:
        styles = ("marked" if each.marked else "ours" if each.ours else Kind.PLAIN for each in line.pieces)
        pieces = zip(line.pieces, styles, strict=True)
        yield "    " + "".join(_paint(piece.text, style, on=painted) for piece, style in pieces)
        if line.pointers:
            yield "    " + _paint(line.pointers, "marked", on=painted)


def _reasons(request: ApprovalRequest) -> list[tuple[str, str]]:
    found = dict.fromkeys((concern.rule, concern.why) for concern in request.concerns)
    return [(visible(rule), visible(why)) for rule, why in found]


class Brief(NamedTuple):
    """A question in few rows. `more` says what is left out beside lines of the diff; `hides_danger` if a marked part or a reason
    is."""

    text: str
    more: str
    is_cut: bool
    hides_danger: bool


def brief(request: ApprovalRequest, *, width: int, painted: bool, rows: int, diff_lines: int) -> Brief:
    """The question in at most so many rows, without those of what would be written."""
    width, reasons, texts = max(width, 40), _reasons(request), _text(request, max(width, 40))
    cuts: list[str] = []

    def cut(text: str, room: int) -> str:
        cuts.extend([text] * (len(text) > room))
        return text if len(text) <= room else f"{text[: max(0, room - 1)]}…"

    head = "── approval needed: " if width >= _WIDE else "── "
    what, where = _what(request, width - len(head) - 1), list[str]()
    scope = _filled(_scope(request), width, indent="  ")
    rows -= 1 + bool(scope)
    whys = [row for rule, why in reasons for row in _filled(f"{why} ({rule})", width, indent="    ", first="  • ")]
    kept = _most_dangerous(texts, max(2, rows - len(reasons)))
    rows -= sum(1 + bool(line.pointers) for line in kept)
    if len(whys) > rows:
        whys = [f"  • {cut(why, width - len(rule) - 7)} ({rule})" for rule, why in reasons[:rows]]
    if len(scope) > 1 + rows - len(whys):
        scope = [f"  {cut(_scope(request), width - 2)}"]
    if what != _what(request):
        where = _filled(f"in {visible(request.cwd)}", width, indent="  ")
        if len(where) + len(whys) + len(scope) <= rows + bool(scope):
            what = _what(request._replace(cwd=""))
        else:
            cuts, where = [what], []
    title = f"{cut(head + what, width - 1)} "
    drawn = [_paint(title + "─" * (width - len(title)), "title", on=painted), *where, *_marked(kept, painted)]
    preview, is_cut = _preview(request, width=width, painted=painted, max_lines=diff_lines, how="v shows all")
    drawn += [*preview, *whys, *scope]
    left_out = {"line": len(texts) - len(kept), "reason": max(0, len(reasons) - max(0, rows))}
    more = ", ".join(f"{count} more {what}{'s' * (count != 1)}" for what, count in left_out.items() if count)
    hides = left_out["reason"] > 0 or any(line.pointers for line in texts if line not in kept)
    more = more or "cut" * bool(cuts)
    return Brief("\n".join(drawn) + "\n", more, bool(more) or is_cut, hides)


def _most_dangerous(shown: Sequence[Shown], rows: int) -> list[Shown]:
    """What fits of a text, in its order: lines with marks first, then those from its start."""
    kept: set[int] = set()
    for number in sorted(range(len(shown)), key=lambda number: (not shown[number].pointers, number)):
        rows -= 1 + bool(shown[number].pointers)
        if rows < 0:
            break
        kept.add(number)
    return [shown[number] for number in sorted(kept)]


def _preview(
    request: ApprovalRequest, *, width: int, painted: bool, max_lines: int | None, how: str
) -> tuple[list[str], bool]:
    """The rows of what would be written, as many as so many lines of the terminal hold, and whether some are left out."""
    shown, rows = excerpt(request, max_lines), [""]
    if not shown.lines and not shown.left:
        return [], False
    parts = [list(wrapped(line.pieces, width=width - 6)) for line in shown.lines]
    while max_lines is not None and len(parts) > 1 and sum(map(len, parts)) > max_lines:
        shown = excerpt(request, len(parts) - 1)
        parts = [list(wrapped(line.pieces, width=width - 6)) for line in shown.lines]
    for line, wraps in zip(shown.lines, parts, strict=True):
        # A line that is cut goes on below itself, further in, so that it cannot pass for a line of its own.
        for indent, part in zip(["    ", *["     ⤷"] * len(wraps)], wraps, strict=False):
            pieces = (_paint(piece.text, "ours" if piece.ours else line.kind, on=painted) for piece in part.pieces)
            rows.append(indent + "".join(pieces))
    if shown.is_cut:
        rest = f"… {shown.left:,} {'more lines' if len(rows) > 1 else 'lines in full'}" if shown.left else "… cut"
        rows.append("    " + _paint(f"{rest}{how and f': {how}'}", "key", on=painted))
    return rows, shown.is_cut


def _what(request: ApprovalRequest, room: int = 10_000) -> str:
    """Who wants what, and where. If that needs more than so many columns, the folder's end stands for it."""
    runs_there = request.environment not in ("", _HERE) and request.kind is not ActionKind.TOOL
    on = f" on {visible(request.environment)}" if runs_there else ""
    who = f"the child agent for “{visible(request.asker, max_chars=100)}”: " if request.asker else ""
    verb = "was tried, and has done this" if request.rule_key == _TRIED else _VERBS[request.kind]
    wants, cwd = f"{who}{visible(request.tool)} {verb}", visible(request.cwd)
    spare = max(8, room - len(wants) - len(on) - len(" in "))
    where = f" in {cwd if len(cwd) <= spare else f'…{cwd[1 - spare :]}'}" if cwd else ""
    return f"{wants}{where}{on}"


MEANINGS = {
    Decision.ONCE: "this, and nothing else",
    Decision.TRY: "run it with connections held; then keep or undo it",
    Decision.TASK: "this kind in this task, for a limited time and number of uses",
    Decision.SESSION: "this kind until this session ends",
    Decision.ALWAYS: "this kind in every session; written to config.yaml",
    Decision.DENY: "no; the model is informed",
}
_TRIED = "effect.tried"
_HERE = "local"  # commands run on this machine, which goes without saying
_LASTING = (Decision.TASK, Decision.SESSION, Decision.ALWAYS)


def covered_by(request: ApprovalRequest, decision: Decision) -> str:
    """What an answer means, and what else it would allow."""
    kinds = _kinds(request)
    return f"{MEANINGS[decision]}: {visible(kinds)}" if decision in _LASTING and kinds else MEANINGS[decision]


def _kinds(request: ApprovalRequest) -> str:
    return "; ".join(dict.fromkeys(concern.covers for concern in request.concerns if concern.covers))


def _scope(request: ApprovalRequest) -> str:
    """What an answer that lasts would allow; empty where there is none."""
    covered, longer = _kinds(request), [each.value for each in _LASTING if each in request.offers]
    return f"{longer[0]}{' and longer' * (len(longer) > 1)}: {visible(covered)}" if covered and longer else ""


def time_left(request: ApprovalRequest, width: int, more: str = "") -> str:
    """Until when it can be answered, and where else, as far as that fits; first, what the question leaves out."""
    left = max(0, round(request.expires_at - time.time()))
    shown = f"{left // 60}:{left % 60:02d}" if left >= 60 else f"{left} s"
    facts = [f"… {more}: v shows all." if more else "", f"Auto-deny in {shown}, Esc denies now." * bool(left)]
    facts.append(f"Also: handrail approvals answer {request.id}" if request.id and left else "")
    line = " "
    for fact in filter(None, facts):
        line += f" {fact}" if len(line) + len(fact) < width or line == " " else ""
    return line[:width].rstrip()


def _filled(text: str, width: int, *, indent: str, first: str | None = None) -> list[str]:
    begin = indent if first is None else first
    return textwrap.wrap(text, width, initial_indent=begin, subsequent_indent=indent, break_on_hyphens=False)


def _paint(text: str, style: str | Kind, *, on: bool) -> str:
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if on and text and _STYLES[style] else text


EDIT, INSTEAD, PICK = "edit", "instead", "pick"
# What can be chosen beside the decisions, and what it means. A word is enough to add one: who asks acts on it.
OTHERS = {
    EDIT: "change it first; what you write is judged again",
    INSTEAD: "no, and say what to do instead",
    PICK: "keep some of it, and take the rest back",
    VIEW: "show all of it",
}
_BACK = ("\x1b[D", "\x1bOD", "\x1b[A", "\x1bOA")
_FORTH = ("\x1b[C", "\x1bOC", "\x1b[B", "\x1bOB", "\t")
# These last: one key alone is too easily pressed.
_TAKE_ENTER = (Decision.ALWAYS.value,)
NO_ANSWER = "\0"


def words_for(request: ApprovalRequest, *, has_more: bool) -> list[str]:
    """What can be answered to it."""
    fitting = {EDIT: request.editable not in ("", PICKED), INSTEAD: True, VIEW: has_more}
    fitting[PICK] = request.editable == PICKED
    return [*(decision.value for decision in request.offers), *(word for word in OTHERS if fitting[word])]


def numbers(text: str, most: int) -> set[int]:
    """Those that a text such as `1 3-5` names, from 1 to `most`; none if it has anything else in it."""
    found = [re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", word) for word in re.split(r"[\s,]+", text.strip())]
    named = {number for match in found if match for number in range(int(match[1]), int(match[2] or match[1]) + 1)}
    return named if None not in found and named <= set(range(1, most + 1)) else set()


class Menu:
    """`words` are what can be answered. `chosen` is the one that Enter would take, None at first: Enter alone is no answer."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)
        self.chosen: int | None = None

    def feed(self, text: str) -> str:
        """The word that was answered; empty when there is none yet; NO_ANSWER for what means nothing here."""
        typed = text.strip().lower()
        is_line = bool(typed) and text.endswith("\n") and typed.isprintable()
        if is_line or (len(typed) > 1 and self._word(typed)):  # typed whole, or pasted
            return NO_ANSWER if len(self._beginning_with(typed)) > 1 else self._word(typed) or NO_ANSWER
        for key in KEY.findall(text):
            if answered := self._press(key):
                return answered
        return ""

    def _press(self, key: str) -> str:
        if key in _BACK or key in _FORTH:
            step = 1 if key in _FORTH else -1
            start = self.chosen if self.chosen is not None else (-1 if step > 0 else 0)
            self.chosen = (start + step) % len(self.words)
            return ""
        if key in "\r\n":
            return NO_ANSWER if self.chosen is None else self.words[self.chosen]
        if key in ("\x1b", "\x04"):
            return Decision.DENY.value
        if len(same := self._beginning_with(key.lower())) > 1:
            # Such as try and task: the key goes from one to the next, and Enter takes it.
            self.chosen = next((number for number in same if number > (self.chosen or 0)), same[0])
            return ""
        word = self._word(key.lower())
        if word in _TAKE_ENTER:
            self.chosen = self.words.index(word)
            return ""
        return word or NO_ANSWER

    def _beginning_with(self, letter: str) -> list[int]:
        return [number for number, word in enumerate(self.words) if word[0] == letter]

    def _word(self, typed: str) -> str:
        decision = ANSWERS.get(typed)
        if decision is not None and decision.value in self.words:
            return decision.value
        return next((word for word in self.words if word in OTHERS and typed in (word, word[0])), "")

    def rows(self, width: int, *, painted: bool) -> list[str]:
        """All words, in one row if they fit: the chosen one in brackets, the keys of the others painted."""
        words = [f"[{word}]" if number == self.chosen else word for number, word in enumerate(self.words)]
        between = ", " if len(", ".join(self.words)) + 2 < width - 5 else " "
        rows = textwrap.wrap(between.join(words) + "?", width - 3, initial_indent="  ", subsequent_indent="  ")
        if not painted:
            return rows

        def paint(found: re.Match[str]) -> str:
            return _paint(found[0], "ours" if found[0].startswith("[") else "key", on=True)

        return [re.sub(r"\[\w+\]|\b\w", paint, row) for row in rows]


@contextlib.contextmanager
def by_key(number: int) -> Iterator[bool]:
    """Have the terminal give each key as it is pressed, and show none. Yields False where it cannot."""
    try:
        before = termios.tcgetattr(number)
        changed = list(before)
        changed[3] &= ~(termios.ECHO | termios.ICANON)
        termios.tcsetattr(number, termios.TCSANOW, changed)
    except (termios.error, OSError):
        yield False
        return
    try:
        yield True
    finally:
        with contextlib.suppress(termios.error, OSError):
            termios.tcsetattr(number, termios.TCSANOW, before)


KEY = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO.|\x1b|.", re.DOTALL)
_MOVES = {
    **dict.fromkeys(("\x1b[D", "\x1bOD", "\x02"), -1),
    **dict.fromkeys(("\x1b[C", "\x1bOC", "\x06"), 1),
    **dict.fromkeys(("\x1b[H", "\x1bOH", "\x1b[1~", "\x01"), -(10**9)),
    **dict.fromkeys(("\x1b[F", "\x1bOF", "\x1b[4~", "\x05"), 10**9),
}


class Line:
    """A text and the place of the cursor in it. Enter ends it, Esc leaves it. A pasted line end is kept."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, len(text)
        self.is_done = self.is_left = False

    def feed(self, typed: str) -> None:
        if typed.endswith(("\n", "\r")):
            self.is_done, typed = True, typed[:-1]
        for key in KEY.findall(typed):
            self._press(key)

    def _press(self, key: str) -> None:
        if key == "\x1b":
            self.is_left = self.is_done = True
        elif key in _MOVES:
            self.at = min(max(0, self.at + _MOVES[key]), len(self.text))
        elif key in ("\x7f", "\x08"):
            self._cut(self.at - 1, self.at)
        elif key in ("\x1b[3~", "\x04"):
            self._cut(self.at, self.at + 1)
        elif key == "\x15":
            self._cut(0, self.at)
        elif key == "\x0b":
            self._cut(self.at, len(self.text))
        elif key == "\x17":
            self._cut(len(re.sub(r"\S*\s*\Z", "", self.text[: self.at])), self.at)
        elif key == "\n" or key.isprintable():
            self.text = self.text[: self.at] + key + self.text[self.at :]
            self.at += 1

    def _cut(self, start: int, end: int) -> None:
        start = max(0, start)
        self.text, self.at = self.text[:start] + self.text[end:], start

    def drawn(self, width: int) -> str:
        """The row, scrolled so that the cursor is in it, and the cursor there. One sign stands for what cannot be shown."""
        cells = [each if each.isprintable() else "⏎" if each == "\n" else "·" for each in self.text] + [" "]
        start, room = self.at, width - columns(cells[self.at])
        while start > 0 and room >= columns(cells[start - 1]):
            start -= 1
            room -= columns(cells[start])
        end = self.at + 1
        while end < len(cells) and room >= columns(cells[end]):
            room -= columns(cells[end])
            end += 1
        back = sum(map(columns, cells[self.at : end]))
        return f"\r\x1b[K  > {''.join(cells[start:end])}\x1b[{back}D"

"""The text of the approval prompt: what would run and where, why it is asked, what each answer covers."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterator

from ...protocols import ActionKind, ApprovalRequest, Decision
from ..display import Piece, lines, visible, wrapped
from ..preview import Kind, excerpt

ANSWERS = {name: decision for decision in Decision for name in (decision.value, decision.value[0])}
ANSWERS |= {
    "r": Decision.TRY,
    "t": Decision.TASK,
    "yes": Decision.ONCE,
    "y": Decision.ONCE,
    "no": Decision.DENY,
    "n": Decision.DENY,
}

_VERBS = {
    ActionKind.COMMAND: "wants to run",
    ActionKind.INPUT: "wants to type into a running program",
    ActionKind.CODE: "wants to run code",
    ActionKind.FILE_WRITE: "wants to write",
    ActionKind.FILE_READ: "wants to read",
    ActionKind.CONNECT: "has a program that wants to connect",
    ActionKind.TOOL: "wants to go on",
    ActionKind.HELD: "runs a program that waits for you, about",
}
_STYLES = {
    "title": "1;33",
    "marked": "1;31",
    "ours": "7",
    "dim": "2",
    "key": "1",
    "added": "32",
    "removed": "31",
    "place": "36",
    "plain": "",
}
_KIND_STYLES = {
    Kind.PLAIN: "plain",
    Kind.HEADER: "key",
    Kind.PLACE: "place",
    Kind.ADDED: "added",
    Kind.REMOVED: "removed",
}


# How many lines of what would be written a question shows at first.
PREVIEW_LINES = 16
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
    yield from _filled(_what(request), width, indent="  ")
    spans = [(concern.start, concern.end) for concern in request.concerns]
    for line in lines(request.text, spans, width=width - 4):
        yield "    " + "".join(_piece(piece, on=painted) for piece in line.pieces)
        if line.pointers:
            yield "    " + _paint(line.pointers, "marked", on=painted)
    yield from _preview(request, width=width, painted=painted, max_lines=max_lines, how=how)
    for rule, why in dict.fromkeys((concern.rule, concern.why) for concern in request.concerns):
        yield from _filled(f"{visible(why)} ({visible(rule)})", width, indent="    ", first="  • ")
    yield from _offers(request, width=width, painted=painted)


def _preview(request: ApprovalRequest, *, width: int, painted: bool, max_lines: int | None, how: str) -> Iterator[str]:
    shown = excerpt(request, max_lines)
    if shown.lines or shown.left:
        yield ""
    for line in shown.lines:
        style = _KIND_STYLES[line.kind]
        # A line that is cut goes on below itself, further in, so that it cannot pass for a line of its own.
        for number, part in enumerate(wrapped(line.pieces, width=width - 6)):
            indent = "    " if number == 0 else "     ⤷"
            yield indent + "".join(
                _paint(piece.text, "ours" if piece.ours else style, on=painted) for piece in part.pieces
            )
    if shown.is_cut:
        rest = f"… {shown.left:,} more lines" if shown.lines else f"… {shown.left:,} lines in full"
        rest = rest if shown.left else "… cut"
        yield "    " + _paint(f"{rest}{how and f': {how}'}", "key", on=painted)


def _what(request: ApprovalRequest) -> str:
    where = f" in {visible(request.cwd)}" if request.cwd else ""
    runs_there = bool(request.environment) and request.kind is not ActionKind.TOOL
    on = f" on {visible(request.environment)}" if runs_there else ""
    who = f"the child agent for “{visible(request.asker, max_chars=100)}”: " if request.asker else ""
    return f"{who}{visible(request.tool)} {_VERBS[request.kind]}{where}{on}:"


_COVERED = {
    Decision.ONCE: "this, and nothing else",
    Decision.TRY: "it runs with every connection held; you see what it did, then keep it or take it back",
    Decision.TASK: "the same kind in this task, for a limited time and number of times",
    Decision.SESSION: "the same kind until this session ends",
    Decision.ALWAYS: "the same kind in every session; written to config.yaml",
    Decision.DENY: "no; the model is informed",
}
_LASTING = (Decision.TASK, Decision.SESSION, Decision.ALWAYS)


def covered_by(request: ApprovalRequest, decision: Decision) -> str:
    """What an answer means, and what else it would allow."""
    kinds = _kinds(request)
    return f"{_COVERED[decision]}: {visible(kinds)}" if decision in _LASTING and kinds else _COVERED[decision]


def _kinds(request: ApprovalRequest) -> str:
    return "; ".join(dict.fromkeys(concern.covers for concern in request.concerns if concern.covers))


def _offers(request: ApprovalRequest, *, width: int, painted: bool) -> Iterator[str]:
    covered = _kinds(request)
    if covered and any(each in _LASTING for each in request.offers):
        longer = [each.value for each in request.offers if each in _LASTING]
        yield from _filled(f"{', '.join(longer)} allow: {visible(covered)}", width, indent="  ")
    left = max(0, round(request.expires_at - time.time()))
    if left:
        no_answer = f"Auto-deny in {_duration(left)}, Esc denies now."
        here = f" Also: handrail approvals answer {request.id}" if request.id else ""
        for line in _filled(no_answer + here, width, indent="  "):
            yield _paint(line, "dim", on=painted)


def _filled(text: str, width: int, *, indent: str, first: str | None = None) -> list[str]:
    begin = indent if first is None else first
    return textwrap.wrap(text, width, initial_indent=begin, subsequent_indent=indent, break_on_hyphens=False)


def _piece(piece: Piece, *, on: bool) -> str:
    if piece.marked:
        return _paint(piece.text, "marked", on=on)
    return _paint(piece.text, "ours", on=on) if piece.ours else piece.text


def _paint(text: str, style: str, *, on: bool) -> str:
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if on and text and _STYLES[style] else text


def _duration(seconds: int) -> str:
    return f"{seconds // 60}:{seconds % 60:02d}" if seconds >= 60 else f"{seconds} s"

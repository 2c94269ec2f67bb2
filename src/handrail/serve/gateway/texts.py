"""What is written into chats. All of it is plain text: nothing in it is markup that a command could forge."""

import time
from collections.abc import Sequence

from ...approval.approvers.prompt import PREVIEW_LINES, covered_by
from ...approval.display import pieces, visible
from ...approval.questions import excerpt, preview_of
from ...platforms.base import sign_of
from ...protocols import ApprovalRequest, Decision
from ...store.approvals import State, StoredRequest

_MAX_COMMAND_CHARS = 2_000
_INDENT = "    "
_MORE_CHARS = 60
STRANGER = "I only work for paired users. To pair: run `handrail pair` on my machine, and send me the code it shows."
HELP = """Write to me in plain language; I work on this machine and ask before anything dangerous.
/approve [ID|all] [once|task|session|always] – approve the question you reply to, the only one, or the one with this id
/deny [ID|all] [reason] – deny it, with a reason
/show [ID] – all that a question is about
/yolo [off] – approve everything in this chat, until a restart or /yolo off
/status – what I am doing, and what waits for you
/stop – stop the current turn
/tools – tools I can use here
/new – start a new session
/help – this text"""


def question(request: ApprovalRequest, *, can_tap: bool, max_chars: int) -> str:
    """The command takes at most half of the text, so that the reasons and the answers always fit. What would be written takes
    the room that is left; /show has the rest."""
    spans = [(concern.start, concern.end) for concern in request.concerns]
    shown = "".join(
        f"⟦{piece.text}⟧" if piece.marked else piece.text
        for piece in pieces(request.text, spans, max_chars=min(_MAX_COMMAND_CHARS, max_chars // 2))
    )
    head = [f"⚠️ {_what(request)}", *(f"    {line}" for line in shown.split("\n"))]
    whys = dict.fromkeys(f"• {visible(each.why)} ({visible(each.rule)})" for each in request.concerns)
    tail = list(whys) or [f"• {visible(request.reason, max_chars=max_chars // 8)}"]
    for decision in request.offers:
        sign = f"{sign_of(decision)} " if can_tap else ""
        tail.append(f"{sign}{_command(decision)} {request.id} – {covered_by(request, decision)}")
    tail.append(f"[{request.id}] Denied automatically in {_left(request)}.")
    room = max_chars - len("\n".join([*head, *tail])) - _MORE_CHARS
    text = "\n".join([*head, *_preview(request, room), *tail])
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"


def _preview(request: ApprovalRequest, room: int) -> list[str]:
    shown, lines = excerpt(request, PREVIEW_LINES), list[str]()
    for line in shown.lines:
        room -= len(line.text) + len(_INDENT) + 1
        if room < 0:
            break
        lines.append(f"{_INDENT}{line.text}")
    more = shown.left + len(shown.lines) - len(lines)
    rest = f"… {more:,} more lines: /show {request.id}" if more else f"… cut: /show {request.id}"
    return [*lines, f"{_INDENT}{rest}"] if more or shown.is_cut else lines


def in_full(request: ApprovalRequest) -> str:
    """All of it: the command, and what would be written."""
    lines = "\n".join(line.text for line in preview_of(request))
    whole = visible(request.text) if request.preview or not lines else ""
    return "\n".join(filter(None, [f"[{request.id}] {_what(request)}", whole, lines]))


def which_one(waiting: Sequence[StoredRequest], decision: Decision | None, *, needs_reply: bool = False) -> str:
    """Ask which of the open questions is meant."""
    if needs_reply:
        return "Reply to the email of the question itself: only that shows that it is you."
    command = "/show" if decision is None else _command(decision)
    choices = [f"{command} {brief(each)}" for each in waiting]
    return "\n".join(["Which one? Reply to its message, or name it:", *choices])


def done(request: ApprovalRequest, decision: Decision) -> str:
    """What was answered, from the request itself."""
    said = "❌ denied" if decision is Decision.DENY else f"✅ allowed {decision.value}"
    return f"{said} [{request.id}] {visible(request.tool)}: {visible(request.text, max_chars=300)}"


def over(stored: StoredRequest) -> str:
    """The text that replaces a closed question."""
    return f"{outcome(stored)}\n{_what(stored.request)}\n    {visible(stored.request.text, max_chars=500)}"


def outcome(stored: StoredRequest) -> str:
    if stored.answer is not None:
        by = visible(stored.answer.by)
        if stored.answer.decision is Decision.DENY:
            why = f": {visible(stored.answer.why)}" if stored.answer.why else ""
            return f"❌ denied by {by}{why}"
        return f"✅ allowed by {by}, {stored.answer.decision.value}"
    return "⌛ nobody answered in time: denied" if stored.state is State.EXPIRED else "⏹ the call was cancelled"


def too_late(stored: StoredRequest) -> str:
    return f"Too late for {stored.request.id}: {outcome(stored)}."


def brief(stored: StoredRequest) -> str:
    request = stored.request
    return f"{request.id} – {visible(request.tool)}: {visible(request.text, max_chars=200)} – {_left(request)} left"


def _what(request: ApprovalRequest) -> str:
    where = f" in {visible(request.cwd)}" if request.cwd else ""
    on = f" on {visible(request.environment)}" if request.environment else ""
    who = f"the child agent for “{visible(request.asker, max_chars=100)}”: " if request.asker else ""
    return f"{who}{visible(request.tool)}{where}{on}:"


def _command(decision: Decision) -> str:
    return "/deny" if decision is Decision.DENY else f"/approve {decision.value}"


def _left(request: ApprovalRequest) -> str:
    seconds = max(0, round(request.expires_at - time.time()))
    return f"{seconds // 60}:{seconds % 60:02d} min" if seconds >= 60 else f"{seconds} s"

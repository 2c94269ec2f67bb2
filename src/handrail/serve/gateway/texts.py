"""What is written into chats. All of it is plain text: nothing in it is markup that a command could forge."""

from __future__ import annotations

import time

from ...approval.approvers.prompt import covered_by
from ...approval.display import pieces, visible
from ...platforms.base import sign_of
from ...protocols import ApprovalRequest, Decision
from ...store.approvals import State, StoredRequest

_MAX_COMMAND_CHARS = 2_000
STRANGER = "I only work for paired users. To pair: run `handrail pair` on my machine, and send me the code it shows."
HELP = """Write to me in plain language; I work on this machine and ask before anything dangerous.
/approve [all] [once|task|session|always] – approve the oldest question, or all
/deny [all] [reason] – deny it, with a reason
/yolo [off] – approve everything in this chat, until a restart or /yolo off
/status – what I am doing, and what waits for you
/stop – stop the current turn
/tools – tools I can use here
/new – start a new session
/help – this text"""


def question(request: ApprovalRequest, *, can_tap: bool, max_chars: int) -> str:
    """The command takes at most half of the text, so that the reasons and the answers always fit."""
    spans = [(concern.start, concern.end) for concern in request.concerns]
    shown = "".join(
        f"⟦{piece.text}⟧" if piece.marked else piece.text
        for piece in pieces(request.text, spans, max_chars=min(_MAX_COMMAND_CHARS, max_chars // 2))
    )
    lines = [f"⚠️ {_what(request)}", *(f"    {line}" for line in shown.split("\n"))]
    whys = dict.fromkeys(f"• {visible(each.why)} ({visible(each.rule)})" for each in request.concerns)
    lines += list(whys) or [f"• {visible(request.reason, max_chars=max_chars // 8)}"]
    for decision in request.offers:
        sign = f"{sign_of(decision)} " if can_tap else ""
        lines.append(f"{sign}{_command(decision)} – {covered_by(request, decision)}")
    left = max(0, round(request.expires_at - time.time()))
    lines.append(f"[{request.id}] Denied automatically in {_duration(left)}.")
    text = "\n".join(lines)
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"


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
    if stored.state is State.EXPIRED:
        return "⌛ nobody answered in time: denied"
    return "⏹ the call was cancelled"


def too_late(stored: StoredRequest) -> str:
    return f"Too late for {stored.request.id}: {outcome(stored)}."


def brief(stored: StoredRequest) -> str:
    left = max(0, round(stored.request.expires_at - time.time()))
    return f"[{stored.request.id}] {visible(stored.request.text, max_chars=200)} – {_duration(left)} left"


def _what(request: ApprovalRequest) -> str:
    where = f" in {visible(request.cwd)}" if request.cwd else ""
    on = f" on {visible(request.environment)}" if request.environment else ""
    who = f"the child agent for “{visible(request.asker, max_chars=100)}”: " if request.asker else ""
    return f"{who}{visible(request.tool)}{where}{on}:"


def _command(decision: Decision) -> str:
    return "/deny" if decision is Decision.DENY else f"/approve {decision.value}"


def _duration(seconds: int) -> str:
    return f"{seconds // 60}:{seconds % 60:02d} min" if seconds >= 60 else f"{seconds} s"

"""Slash commands about what may happen without asking."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ...errors import InvalidArguments
from ...protocols import Answer, Decision
from ..approvals import chosen, come_too_late, show_request

if TYPE_CHECKING:
    from .chat import Chat


def approve(chat: Chat, rest: str) -> None:
    """Without an id: what waits, and what is allowed. With one: answer it."""
    words = rest.split()
    if not words:
        _show(chat)
        return
    store = chat.app.gate.store
    stored = store.get(words[0])
    decision = chosen(stored, words[1] if len(words) > 1 else "")
    if decision is None:
        return
    before = store.answer(stored.request.id, Answer(decision, "cli"))
    said = "denied" if decision is Decision.DENY else f"allowed, {decision.value}"
    chat.say(come_too_late(before) if before else f"{stored.request.id}: {said}")


def choices(chat: Chat) -> Iterable[str]:
    return [stored.request.id for stored in chat.app.gate.store.pending()]


def _show(chat: Chat) -> None:
    gate = chat.app.gate
    waiting = gate.store.pending()
    for stored in waiting:
        show_request(stored)
    if not waiting:
        chat.say("No requests are pending.")
    mine = {f"task:{chat.agent.session_id}", f"session:{chat.agent.session_id}"}
    for grant in gate.store.grants.of(sorted(mine)):
        chat.say(f"allowed in this session: {grant.key} (handrail approvals revoke {grant.id})", "dim")
    for key in gate.settings.config.command_allowlist:
        chat.say(f"allowed always: {key}", "dim")


def yolo(chat: Chat, rest: str) -> None:
    wanted = {"": not chat.yolo, "on": True, "off": False}.get(rest.lower())
    if wanted is None:
        raise InvalidArguments("/yolo on, or /yolo off")
    chat.app.gate.settings.lift_asking(wanted)
    chat.yolo = wanted
    if wanted:
        chat.say("You are not asked from now on. Blocked actions and your deny list still hold.", "yellow")
    else:
        chat.say("You are asked again.")

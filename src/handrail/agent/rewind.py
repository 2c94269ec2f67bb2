"""Go back to before a message of the user: take back what was said since, and what the calls have changed on disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import InvalidArguments
from .conversation import ADDED_BY

if TYPE_CHECKING:
    from ..effects.calls import Calls
    from ..store.sessions import StoredMessage
    from .agent import Agent

PARTS = ("message", "files")
_MAX_NAMED = 15


def asked(agent: Agent) -> list[StoredMessage]:
    """The user's messages that are still part of the conversation."""
    found = agent.store.messages(agent.session_id)
    return [one for one in found if one.message["role"] == "user" and ADDED_BY not in one.message]


def last(agent: Agent, text: str) -> tuple[list[StoredMessage], str]:
    """What `/undo [message|files]` means: the messages to take back, and the part."""
    if text not in ("", *PARTS):
        raise InvalidArguments("/undo, /undo message, or /undo files")
    return asked(agent)[-1:], text


def since(agent: Agent, text: str) -> tuple[list[StoredMessage], str]:
    messages, (number, _, part) = asked(agent), text.partition(" ")
    is_known = number.isascii() and number.isdecimal() and 0 < int(number) <= len(messages)
    if not is_known or part not in ("", *PARTS):
        raise InvalidArguments("/rewind lists your messages; /rewind N, /rewind N message, or /rewind N files")
    return messages[int(number) - 1 :], part


def go_back(agent: Agent, calls: Calls, messages: Sequence[StoredMessage], part: str) -> tuple[list[str], str]:
    """Do it. Returns what was done, a line each, and the first message that was taken back; empty if none was: they stay if
    something on disk cannot be taken back."""
    if not messages:
        return ["There is nothing to take back."], ""
    lines: list[str] = []
    if part != "message":
        for call in calls.last(1000, session=agent.session_id):
            if call.begun < messages[0].at:
                break
            done = calls.undo(call.number)
            if done["status"] != "undone":
                paths = ", ".join(one["path"] for one in done["conflicts"][:_MAX_NAMED])
                lines.append(f"Call {call.number} stays: {done['reason'] or f'{paths} was changed since'}.")
                hint = f"/undo message takes back your message alone; handrail undo {call.number} --force the files."
                return [*lines, hint], ""
            lines.append(f"Call {call.number} is undone: {call.head.partition(chr(10))[0]}")
    if part == "files":
        return lines or ["Nothing on disk was changed since."], ""
    first = [agent.undo() for _ in messages][-1]
    said = "Taken back." if part != "message" else "Taken back. Files and other effects stay as they are."
    return [*lines, said], first

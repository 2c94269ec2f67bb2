"""Sessions as the command line shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from ..errors import SessionNotFound
from ..store.export import text_of
from ..store.sessions import SessionInfo, SessionStore, StoredMessage
from ..types import JsonDict
from .call_text import shortened
from .options import session_ids
from .output import visible

LAST = "last"
SessionId = Annotated[
    str,
    typer.Argument(
        metavar="[SESSION]", help="Its id, the start of it, or `last`: the one used last.", autocompletion=session_ids
    ),
]
_TITLE_CHARS, _RESULT_LINES = 60, 6


def chosen(store: SessionStore, session: str) -> SessionInfo:
    """Raises SessionNotFound."""
    if session != LAST:
        return store.get(session)
    latest = store.recent(limit=1)
    if not latest:
        raise SessionNotFound("there is no session yet; `handrail chat` starts one")
    return latest[0]


def session_view(info: SessionInfo) -> JsonDict:
    return {**info._asdict(), "created": _exactly(info.created), "updated": _exactly(info.updated)}


def session_row(info: SessionInfo) -> tuple[str, ...]:
    tokens = f"{info.input_tokens + info.output_tokens:,}"
    title = shortened(visible(info.title), _TITLE_CHARS) or "(empty)"
    return info.id, when(info.updated), visible(info.model), tokens, cost(info.cost), title


def message_text(stored: StoredMessage) -> str:
    """One message and its role. A long result is cut: `sessions export` has all of it."""
    message = stored.message
    lines = [f"── {_speaker(message)} · {when(stored.at)} · {stored.id}"]
    text = visible(text_of(message)).rstrip()
    if message["role"] == "tool":
        whole = text.splitlines()
        text = "\n".join(shortened(line, 200) for line in whole[:_RESULT_LINES])
        if len(whole) > _RESULT_LINES:
            text += f"\n[... {len(whole) - _RESULT_LINES} more lines]"
    if text:
        lines.append(text)
    for call in message.get("tool_calls") or ():
        lines.append(f"→ {visible(call['function']['name'])} {shortened(visible(call['function']['arguments']), 200)}")
    return "\n".join(lines)


def when(at: float) -> str:
    """A time in the local time zone."""
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _exactly(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().isoformat(timespec="seconds")


def cost(dollars: float | None) -> str:
    return "" if dollars is None else f"${dollars:.4f}"


def _speaker(message: JsonDict) -> str:
    if message["role"] == "tool":
        return f"result of {visible(str(message.get('name', '')))}"
    if message.get("added_by"):
        return "handrail"
    return {"user": "you", "assistant": "agent"}.get(message["role"], str(message["role"]))

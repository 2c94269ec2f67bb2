"""A conversation as text: for a file, and on the screen again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.text import Text

from ...types import JsonDict
from ..call_text import shortened
from ..output import visible

if TYPE_CHECKING:
    from ...store.sessions import SessionInfo
    from .screen import Screen

_RESULT_CHARS = 2_000
_SHOWN_CHARS = 600


def as_markdown(messages: Sequence[JsonDict], info: SessionInfo) -> str:
    began = datetime.fromtimestamp(info.created, UTC).strftime("%Y-%m-%d %H:%M UTC")
    parts = [f"# {info.title or 'A conversation'}", f"Session {info.id} with {info.model}, {began}, in `{info.cwd}`."]
    for message in messages:
        text = _text(message)
        match message["role"]:
            case "user":
                parts.append(f"## You\n\n{text}")
            case "assistant":
                parts += [f"## Agent\n\n{text}"] if text else []
                parts += [f"`{call}`" for call in _calls(message)]
            case "tool":
                parts.append(_fenced(shortened(text, _RESULT_CHARS)))
    return "\n\n".join(parts) + "\n"


def show(screen: Screen, messages: Sequence[JsonDict], *, last: int) -> None:
    """The last messages of the user and the agent; of calls only that they were made."""
    shown = [message for message in messages if message["role"] in ("user", "assistant")]
    if len(shown) > last:
        screen.print(Text(f"… {len(shown) - last} messages above; /history {len(shown)} shows them", "dim"))
    for message in shown[-last:] if last else ():
        text = shortened(_text(message), _SHOWN_CHARS)
        if message["role"] == "user":
            screen.print(Text(f"› {visible(text)}", "bold"))
        elif text:
            screen.markdown(text)
        for call in _calls(message):
            screen.print(Text(f"  {visible(shortened(call, screen.width - 4))}", "dim"))


def _text(message: JsonDict) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content.strip()
    return "\n".join(str(part.get("text") or f"[{part.get('type')}]") for part in content or ())


def _calls(message: JsonDict) -> Iterator[str]:
    for call in message.get("tool_calls") or ():
        yield f"{call['function']['name']} {call['function']['arguments']}"


def _fenced(text: str) -> str:
    longest = max((len(line) - len(line.lstrip("`")) for line in text.splitlines()), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"

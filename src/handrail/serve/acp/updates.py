"""What an editor shows of a session: cards for tool calls with diffs, text, thoughts, the plan, and earlier turns again."""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import acp
from acp import schema

from ...agent.conversation import ADDED_BY
from ...agent.events import Event, Notice, ReasoningDelta, TextDelta, ToolEnded, ToolProgress, ToolStarted
from ...agent.tool_calls import arguments_of
from ...approval.display import visible
from ...core.outcome import error_of, parsed
from ...protocols import TodoItem
from ...store.sessions import StoredMessage
from ...types import FileChange, JsonDict
from .link import PRESENTATION, EditorLink

_MAX_CHARS, _MAX_DIFF_CHARS = 20_000, 2 << 20
_TITLE_CHARS = 120
_EDITS = ("write_file", "patch")
_STATES: dict[str, Any] = {name: name for name in ("pending", "in_progress", "completed")}


def updates_of(event: Event, link: EditorLink, cwd: str) -> Iterator[Any]:
    """What the editor is sent for an event of a turn."""
    if isinstance(event, TextDelta):
        yield acp.update_agent_message_text(event.text)
    elif isinstance(event, ReasoningDelta):
        yield acp.update_agent_thought_text(event.text)
    elif isinstance(event, Notice):
        yield acp.update_agent_thought_text(f"[{event.text}]\n")
    elif isinstance(event, ToolStarted):
        link.open_calls[event.call_id] = event
        yield card(event.call_id, event.tool, event.arguments, cwd=cwd, status="in_progress")
    elif isinstance(event, ToolProgress) and event.call_id in link.open_calls:
        share = "" if event.fraction is None else f" ({event.fraction:.0%})"
        yield acp.update_tool_call(event.call_id, content=text_content(f"{event.message}{share}"))
    elif isinstance(event, ToolEnded):
        link.open_calls.pop(event.call_id, None)
        is_short = len(event.result) <= _MAX_CHARS
        changed = [each for each in event.changes if each.before != each.after]
        changes = [each for each in changed if len(f"{each.before}{each.after}") <= _MAX_DIFF_CHARS]
        diffs = [diff_content(change) for change in changes]
        yield acp.update_tool_call(
            event.call_id,
            status="failed" if event.error_type else "completed",
            content=diffs or _result_content(event.tool, event.content or event.result),
            locations=[schema.ToolCallLocation(path=change.path) for change in changes] or None,
            raw_output=(is_short and _parsed(event.result)) or event.result[:_MAX_CHARS],
        )


def card(call_id: str, tool: str, arguments: JsonDict, *, cwd: str, status: Any, **more: Any) -> Any:
    """A new card. The arguments are shown as the model wrote them."""
    path, line = arguments.get("path"), arguments.get("offset")
    if isinstance(path, str) and path:
        place = os.path.join(cwd, os.path.expanduser(path))
        more["locations"] = [schema.ToolCallLocation(path=place, line=line if isinstance(line, int) else None)]
    # One line: the command itself, or the tool and what it is about.
    subject = next((arguments[name] for name in PRESENTATION["subjects"] if isinstance(arguments.get(name), str)), "")
    first, _, rest = subject.strip().partition("\n")
    text = first + (" …" if rest else "")
    title = visible(text if tool == "terminal" and text else f"{tool} {text}".strip())
    title = title if len(title) <= _TITLE_CHARS else f"{title[: _TITLE_CHARS - 1]}…"
    kind = PRESENTATION["kinds"].get(tool, "other")
    return acp.start_tool_call(call_id, title, kind=kind, status=status, raw_input=arguments, **more)


def plan_of(todos: Iterable[TodoItem]) -> Any:
    """The plan, from the agent's todo list. What was dropped from it is not shown."""
    known = [item for item in todos if item.status in _STATES]
    return acp.update_plan([acp.plan_entry(item.content, status=_STATES[item.status]) for item in known])


def replayed(messages: Sequence[StoredMessage], cwd: str) -> Iterator[Any]:
    """A stored conversation as an editor would have seen it."""
    tool_messages = [stored.message for stored in messages if stored.message["role"] == "tool"]
    results = {message["tool_call_id"]: message["content"] for message in tool_messages}
    for message in (stored.message for stored in messages):
        if message["role"] == "user" and ADDED_BY not in message:
            yield from map(acp.update_user_message, _blocks(message["content"]))
        elif message["role"] == "assistant":
            yield from map(acp.update_agent_message, _blocks(message.get("content") or ""))
            for call in message.get("tool_calls") or ():
                name, result = call["function"]["name"], results.get(call["id"], "")
                more: Any = {"status": "completed" if result and not error_of(result) else "failed"}
                more["content"] = _result_content(name, result)
                yield card(call["id"], name, arguments_of(call["function"]), cwd=cwd, **more)


def diff_content(change: FileChange) -> Any:
    return acp.tool_diff_content(change.path, change.after or "", change.before)


def text_content(text: str) -> list[Any]:
    return [acp.tool_content(acp.text_block(_bounded(text)))] if text else []


def _result_content(tool: str, result: Any) -> list[Any]:
    """A result for people: the output of a command and a diff as they are, everything else as the model gets it."""
    if not isinstance(result, str):
        return [acp.tool_content(block) for block in _blocks(result)]
    found = _parsed(result)
    if tool == "terminal" and isinstance(found.get("output"), str):
        return text_content(f"{fenced(found['output'])}\n{found.get('error', '')}".strip())
    if tool in _EDITS and found.get("diff"):
        return text_content(fenced(str(found["diff"]), "diff"))
    return text_content(str(found.get("error") or result))


def _blocks(content: Any) -> list[Any]:
    """Content in OpenAI's shape as blocks of the protocol."""
    if isinstance(content, str):
        return [acp.text_block(content)] if content.strip() else []
    blocks: list[Any] = []
    for part in (content.get("content") if isinstance(content, dict) else content) or ():
        kind, found, data = str((part.get("image_url") or {}).get("url", "")).partition(";base64,")
        if found:
            blocks.append(acp.image_block(data, kind.removeprefix("data:")))
        elif part.get("text"):
            blocks.append(acp.text_block(str(part["text"])))
    return blocks


def _parsed(result: str) -> JsonDict:
    found = parsed(result)
    return found if isinstance(found, dict) else {}


def _bounded(text: str) -> str:
    return text if len(text) <= _MAX_CHARS else f"{text[:_MAX_CHARS]}\n[{len(text) - _MAX_CHARS:,} more characters]"


def fenced(text: str, language: str = "") -> str:
    """As a block of code, whatever is in it; nothing for nothing."""
    longest = max((len(line) - len(line.lstrip("`")) for line in text.splitlines()), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{_bounded(text)}\n{fence}" if text.strip() else ""

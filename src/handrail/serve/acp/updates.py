"""What an editor shows of a session: cards for tool calls with diffs, text, thoughts, the plan, and earlier turns again."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import acp
from acp import schema

from ...agent.conversation import ADDED_BY
from ...agent.events import Event, Notice, ReasoningDelta, TextDelta, ToolEnded, ToolProgress, ToolStarted
from ...agent.tool_calls import arguments_of
from ...approval.display import visible
from ...core.outcome import error_of
from ...protocols import TodoItem
from ...store.sessions import StoredMessage
from ...types import JsonDict
from .link import Change, EditorLink

_MAX_CHARS = 20_000
_TITLE_CHARS = 120
_KINDS = {
    "read_file": "read", "write_file": "edit", "patch": "edit", "search_files": "search", "terminal": "execute",
    "process": "execute", "execute_code": "execute", "web_search": "search", "web_extract": "fetch", "todo": "think",
    "memory": "think", "delegate_task": "think", "session_search": "search", "skill_view": "read", "skills_list": "read",
    "read_result": "read", "tool_search": "search",
}  # fmt: skip
_EDITS = ("write_file", "patch")
# Where the argument is that says most about a call.
_SUBJECTS = ("command", "path", "query", "pattern", "url", "urls", "goal", "name", "code", "question", "action")


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
        content = [_text(f"{event.message}{share}")]
        yield acp.update_tool_call(event.call_id, status="in_progress", content=content)
    elif isinstance(event, ToolEnded):
        link.open_calls.pop(event.call_id, None)
        yield _ended(event, _changes_of(event, link))


def card(call_id: str, tool: str, arguments: JsonDict, *, cwd: str, status: Any, **more: Any) -> Any:
    """A new card. The arguments are shown as the model wrote them."""
    path = arguments.get("path")
    locations = None
    if isinstance(path, str) and path:
        line = arguments.get("offset")
        place = os.path.join(cwd, os.path.expanduser(path))
        locations = [schema.ToolCallLocation(path=place, line=line if isinstance(line, int) and line > 0 else None)]
    kind: Any = _KINDS.get(tool, "fetch" if tool.startswith("browser_") else "other")
    title = title_of(tool, arguments)
    return acp.start_tool_call(
        call_id, title, kind=kind, status=status, locations=locations, raw_input=arguments, **more
    )


def title_of(tool: str, arguments: Mapping[str, Any]) -> str:
    """One line: the command itself, or the tool and what it is about. Control characters are made visible."""
    subject = next((arguments[name] for name in _SUBJECTS if isinstance(arguments.get(name), str)), "")
    first, _, rest = subject.strip().partition("\n")
    text = first + (" …" if rest else "")
    title = visible(text if tool == "terminal" and text else f"{tool} {text}".strip())
    return title if len(title) <= _TITLE_CHARS else f"{title[: _TITLE_CHARS - 1]}…"


def abandoned(call_id: str) -> Any:
    """The end of a card whose call was cancelled."""
    return acp.update_tool_call(call_id, status="failed", content=[_text("cancelled")])


def plan_of(todos: Iterable[TodoItem]) -> Any:
    """The plan, from the agent's todo list. What was dropped from it is not shown."""
    known: dict[str, Any] = {name: name for name in ("pending", "in_progress", "completed")}
    return acp.update_plan(
        [acp.plan_entry(item.content, status=known[item.status]) for item in todos if item.status in known]
    )


def replayed(messages: Sequence[StoredMessage], cwd: str) -> Iterator[Any]:
    """A stored conversation as an editor would have seen it."""
    results = {
        stored.message["tool_call_id"]: stored.message for stored in messages if stored.message["role"] == "tool"
    }
    for stored in messages:
        message = stored.message
        if message["role"] == "user" and ADDED_BY not in message:
            yield from map(acp.update_user_message, _blocks(message["content"]))
        elif message["role"] == "assistant":
            yield from map(acp.update_agent_message, _blocks(message.get("content") or ""))
            for call in message.get("tool_calls") or ():
                yield _old_card(call, results.get(call["id"], {}).get("content", ""), cwd)


def diff_content(change: Change) -> Any:
    return acp.tool_diff_content(change.path, change.after or "", change.before)


def _old_card(call: JsonDict, result: Any, cwd: str) -> Any:
    function = call["function"]
    status = "failed" if not result or error_of(result) else "completed"
    content = [acp.tool_content(block) for block in _result_blocks(function["name"], result)]
    return card(call["id"], function["name"], arguments_of(function), cwd=cwd, status=status, content=content)


def _changes_of(event: ToolEnded, link: EditorLink) -> list[Change]:
    """The files that the call changed: calls that change the same file run one after the other, so the paths tell them apart."""
    if event.tool not in _EDITS or event.error_type:
        return []
    found = _parsed(event.result)
    entries = [found, *(each for each in found.get("files", ()) if isinstance(each, dict))]
    named = [str(entry[key]) for entry in entries for key in ("path", "moved_to") if entry.get(key)]
    return [link.changes.pop(path) for path in dict.fromkeys(named) if path in link.changes]


def _ended(event: ToolEnded, changes: Sequence[Change]) -> Any:
    content: list[Any] = [diff_content(change) for change in changes]
    if not content:
        content = [acp.tool_content(block) for block in _result_blocks(event.tool, event.result)]
    return acp.update_tool_call(
        event.call_id,
        status="failed" if event.error_type else "completed",
        content=content,
        locations=[schema.ToolCallLocation(path=change.path) for change in changes] or None,
        raw_output=(len(event.result) <= _MAX_CHARS and _parsed(event.result)) or event.result[:_MAX_CHARS],
    )


def _result_blocks(tool: str, result: Any) -> list[Any]:
    """A result for people: the output of a command and a diff as they are, everything else as the model gets it."""
    if not isinstance(result, str):
        return _blocks(result)
    found = _parsed(result)
    if tool == "terminal" and isinstance(found.get("output"), str):
        text = f"{_fenced(found['output'])}\n{found.get('error', '')}".strip()
    elif found.get("error"):
        text = str(found["error"])
    elif tool in _EDITS and found.get("diff"):
        text = _fenced(str(found["diff"]), "diff")
    else:
        text = result
    return [acp.text_block(_bounded(text))] if text else []


def _blocks(content: Any) -> list[Any]:
    """Content in OpenAI's shape as blocks of the protocol."""
    if isinstance(content, str):
        return [acp.text_block(content)] if content.strip() else []
    parts = content.get("content") if isinstance(content, dict) else content
    blocks: list[Any] = []
    for part in parts if isinstance(parts, list) else ():
        url = str((part.get("image_url") or {}).get("url", "")) if isinstance(part, dict) else ""
        if url.startswith("data:") and ";base64," in url:
            kind, _, data = url.removeprefix("data:").partition(";base64,")
            blocks.append(acp.image_block(data, kind))
        elif isinstance(part, dict) and part.get("text"):
            blocks.append(acp.text_block(str(part["text"])))
    return blocks


def _parsed(result: str) -> JsonDict:
    try:
        found = json.loads(result)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _text(text: str) -> Any:
    return acp.tool_content(acp.text_block(_bounded(text)))


def _bounded(text: str) -> str:
    return text if len(text) <= _MAX_CHARS else f"{text[:_MAX_CHARS]}\n[{len(text) - _MAX_CHARS:,} more characters]"


def _fenced(text: str, language: str = "") -> str:
    if not text.strip():
        return ""
    longest = max((len(line) - len(line.lstrip("`")) for line in text.splitlines()), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{_bounded(text)}\n{fence}"

"""Read the calls of a model's message, in any of the shapes that providers use, and write the answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.outcome import Outcome
from ..errors import InvalidArguments
from ..types import JsonDict, ToolCall


def read_call(raw: Any) -> ToolCall:
    """One call: OpenAI chat (`function.name`), OpenAI Responses (`call_id`), Anthropic (`tool_use`), or `name`/`arguments`.

    Objects with the same attributes, as the providers' own clients give them, will do. Raises InvalidArguments.
    """
    function = field_of(raw, "function")
    source = raw if function is None else function
    name = field_of(source, "name")
    if not isinstance(name, str) or not name:
        raise InvalidArguments("this tool call has no name; it needs {'id', 'function': {'name', 'arguments'}}")
    arguments = next((v for key in ("arguments", "input", "args") if (v := field_of(source, key)) is not None), None)
    return ToolCall(
        name, arguments, str(field_of(raw, "call_id") or field_of(raw, "id") or field_of(raw, "tool_call_id") or "")
    )


def read_calls(message: Any) -> list[Any]:
    """The raw calls of a message, or the list itself when it is one already."""
    if isinstance(message, list | tuple):
        return list(message)
    calls = field_of(message, "tool_calls")
    if calls is None:
        content = field_of(message, "content")
        calls = (
            [part for part in content if field_of(part, "type") == "tool_use"] if isinstance(content, list) else None
        )
    if calls is None and (field_of(message, "function") is not None or field_of(message, "name") is not None):
        calls = [message]
    if not isinstance(calls, Iterable) or isinstance(calls, str | bytes | dict):
        raise InvalidArguments("this message has no tool_calls")
    return list(calls)


def tool_message(call_id: str, name: str, outcome: Outcome) -> JsonDict:
    content = outcome if isinstance(outcome, str) else outcome["content"]
    return {"role": "tool", "tool_call_id": call_id, "name": name, "content": content}


def field_of(source: Any, key: str) -> Any:
    """A field of a JSON object, or of an object that a provider's client made of it."""
    return source.get(key) if isinstance(source, dict) else getattr(source, key, None)

"""Hook functions as plugins of Hermes Agent write them: other names for some arguments, and arguments that we do not have."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

# Hooks of things that do not exist here. Registering one is fine; it is never called.
NEVER_CALLED = frozenset(
    "pre_verify pre_gateway_dispatch kanban_task_claimed kanban_task_completed kanban_task_blocked".split()
)
# Their name for an argument, and how it follows from ours.
_NAMES: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "conversation_history": lambda payload: payload["messages"],
    "assistant_response": lambda payload: payload["answer"],
    "response_text": lambda payload: payload["answer"],
    "parent_session_id": lambda payload: payload["session_id"],
    "child_summary": lambda payload: payload["summary"],
    "child_status": lambda payload: payload["status"],
    "command": lambda payload: payload["args"].get("command", ""),
    "description": lambda payload: payload["reason"],
    "pattern_key": lambda payload: payload["rule_key"],
    "choice": lambda payload: payload["decision"],
    "completed": lambda payload: payload["reason"] == "answered",
    "interrupted": lambda payload: payload["reason"] == "interrupted",
}


def adapted(callback: Callable[..., Any]) -> Callable[..., Any]:
    """A hook of ours that calls theirs: with every argument that it names, None for one that there is not here."""
    parameters = inspect.signature(callback).parameters.values()
    takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters)
    named = [each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]

    def call(**payload: Any) -> Any:
        given = {name: _value(name, payload) for name in named}
        result = callback(**(payload if takes_all else {}) | given)
        if isinstance(result, dict) and set(result) == {"context"}:  # how theirs adds to a prompt
            return result["context"]
        return result

    call.__qualname__ = getattr(callback, "__qualname__", type(callback).__name__)
    return call


def _value(name: str, payload: Mapping[str, Any]) -> Any:
    if name in payload or name not in _NAMES:
        return payload.get(name)
    try:
        return _NAMES[name](payload)
    except (KeyError, AttributeError):
        return None

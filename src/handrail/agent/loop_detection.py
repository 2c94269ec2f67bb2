"""Detect that a model repeats the same failing call, warn it, and stop it in the end."""

from __future__ import annotations

import json

from ..types import JsonDict

WARN_AFTER = 3
STOP_AFTER = 8


class LoopGuard:
    """Counts how often each call has failed since it last succeeded. Different arguments make a different call."""

    def __init__(self) -> None:
        self._failures: dict[tuple[str, str], int] = {}

    def note(self, name: str, arguments: str, *, failed: bool) -> int:
        """How often this exact call has failed so far."""
        key = (name, arguments)
        if not failed:
            self._failures.pop(key, None)
            return 0
        self._failures[key] = self._failures.get(key, 0) + 1
        return self._failures[key]


def with_warning(message: JsonDict, times: int) -> JsonDict:
    """The tool message with a note on how often the same call failed."""
    note = f"[This call has now failed {times} times with the same arguments. Do something else, or say what you need.]"
    content = message.get("content")
    if not isinstance(content, str):
        return message
    try:
        answer = json.loads(content)
    except ValueError:
        answer = None
    if isinstance(answer, dict):
        return {**message, "content": json.dumps({**answer, "hint": note}, ensure_ascii=False)}
    return {**message, "content": f"{content}\n{note}"}

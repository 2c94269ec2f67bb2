"""A model with scripted replies."""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..protocols import ModelReply
from ..types import JsonDict

Messages = Sequence[Mapping[str, Any]]
# A fixed reply, or one computed from the conversation and the offered tools.
Reply = ModelReply | Callable[[Messages, Messages], ModelReply]


def call(name: str, call_id: str | None = None, /, **arguments: Any) -> JsonDict:
    """A tool call in OpenAI's format. All keyword arguments are arguments of the tool, also `id` and `name`."""
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": call_id or f"call_{uuid.uuid4().hex[:12]}", "type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class Sent:
    """A copy of what the model was sent for one reply."""

    messages: list[JsonDict]
    tools: list[JsonDict]


class ScriptedModel:
    """Returns the script's replies in turn. `sent` has what it was sent for each."""

    def __init__(self, script: Iterable[Reply]) -> None:
        self._script = list(script)
        self.sent: list[Sent] = []

    def reply(self, messages: Messages, tools: Messages) -> ModelReply:
        """The next reply. Raises AssertionError if the caller runs more turns than the script has."""
        position = len(self.sent)
        self.sent.append(Sent(_kept(messages), _kept(tools)))
        if position >= len(self._script):
            raise AssertionError(
                f"the script is over: it has {len(self._script)} replies and was asked for reply {position + 1}; "
                f"the last message was {_shown(messages)}"
            )
        step = self._script[position]
        return step(messages, tools) if callable(step) else copy.deepcopy(step)

    @property
    def remaining(self) -> int:
        """How many replies were not used."""
        return max(0, len(self._script) - len(self.sent))


def _kept(dicts: Messages) -> list[JsonDict]:
    return [dict(copy.deepcopy(item)) for item in dicts]


def _shown(messages: Messages) -> str:
    text = repr(dict(messages[-1])) if messages else "none"
    return text if len(text) <= 300 else text[:299] + "…"

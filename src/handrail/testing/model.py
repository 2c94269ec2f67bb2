"""A model whose answers are written down beforehand."""

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
# A reply that is known beforehand, or worked out from the conversation and the tools that were offered.
Reply = ModelReply | Callable[[Messages, Messages], ModelReply]


def call(name: str, call_id: str | None = None, /, **arguments: Any) -> JsonDict:
    """A tool call in OpenAI's shape. Everything given by name is an argument of the tool, `id` and `name` too."""
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": call_id or f"call_{uuid.uuid4().hex[:12]}", "type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class Sent:
    """What the model was sent for one reply, as it was then."""

    messages: list[JsonDict]
    tools: list[JsonDict]


class ScriptedModel:
    """Answers with the script's replies, one after the other. `sent` has what it was sent for each."""

    def __init__(self, script: Iterable[Reply]) -> None:
        self._script = list(script)
        self.sent: list[Sent] = []

    def reply(self, messages: Messages, tools: Messages) -> ModelReply:
        """The next reply. AssertionError when there is none: whoever asks runs more turns than the script foresees."""
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
        """How many replies were not asked for."""
        return max(0, len(self._script) - len(self.sent))


def _kept(dicts: Messages) -> list[JsonDict]:
    return [dict(copy.deepcopy(item)) for item in dicts]


def _shown(messages: Messages) -> str:
    text = repr(dict(messages[-1])) if messages else "none"
    return text if len(text) <= 300 else text[:299] + "…"

"""What an agent tells while it works: one value an event, in the order in which things happen."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from ..types import JsonDict


class Usage(NamedTuple):
    """What a model call, or all of them together, took. `cost` is in US dollars, None when no price is known."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None

    def plus(self, other: Usage) -> Usage:
        costs = [usage.cost for usage in (self, other) if usage.cost is not None]
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            sum(costs) if costs else None,
        )


class End(Enum):
    """Why the agent stopped."""

    ANSWERED = "answered"
    INTERRUPTED = "interrupted"
    TURNS = "turns"  # a budget is used up: so many model calls
    TOKENS = "tokens"
    TIME = "time"
    COST = "cost"
    FAILED = "failed"  # the model could not be asked


class TextDelta(NamedTuple):
    """A piece of the answer, as it is written."""

    text: str


class ReasoningDelta(NamedTuple):
    """A piece of what the model thinks aloud, where it shows that."""

    text: str


class ToolStarted(NamedTuple):
    call_id: str
    tool: str
    arguments: JsonDict
    emoji: str


class ToolProgress(NamedTuple):
    call_id: str
    tool: str
    message: str
    fraction: float | None


class ToolEnded(NamedTuple):
    """`error_type` is empty for a call that gave a result."""

    call_id: str
    tool: str
    result: str
    error_type: str
    seconds: float


class Notice(NamedTuple):
    """Something that the person should know: a retry, a shortened conversation, a repaired answer."""

    text: str


class MessageEnded(NamedTuple):
    """One answer of the model is complete, and is in the conversation."""

    message: JsonDict
    usage: Usage


class TurnEnded(NamedTuple):
    """The agent waits for the person again. `usage` is that of the whole turn."""

    end: End
    answer: str
    usage: Usage
    model_calls: int
    reason: str = ""


Event = TextDelta | ReasoningDelta | ToolStarted | ToolProgress | ToolEnded | Notice | MessageEnded | TurnEnded

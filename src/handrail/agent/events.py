"""The events of a turn, in the order in which things happen: one value per event."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from ..protocols import ApprovalRequest
from ..types import FileChange, JsonDict


class Usage(NamedTuple):
    """What one model call, or several together, used. `cost` is in US dollars, None when no price is known."""

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
    TURNS = "turns"  # the budget of model calls is used up
    TOKENS = "tokens"
    TIME = "time"
    COST = "cost"
    FAILED = "failed"  # the model could not be asked


class TextDelta(NamedTuple):
    """A piece of the answer, as it is written."""

    text: str


class ReasoningDelta(NamedTuple):
    """A piece of the model's reasoning, where it is shown."""

    text: str


class ToolStarted(NamedTuple):
    call_id: str
    tool: str
    arguments: JsonDict
    emoji: str


class ToolWaiting(NamedTuple):
    """The call waits for somebody's answer. A request from elsewhere names it by `request.id`, once it is stored."""

    call_id: str
    tool: str
    request: ApprovalRequest


class ToolProgress(NamedTuple):
    call_id: str
    tool: str
    message: str
    fraction: float | None


class ToolEnded(NamedTuple):
    """`error_type` is empty for a call that succeeded. Of its `seconds` it `waited` so many for an answer. `content` are the
    parts of a result that is more than text, such as an image."""

    call_id: str
    tool: str
    result: str
    error_type: str
    seconds: float
    changes: tuple[FileChange, ...] = ()
    waited: float = 0.0
    content: tuple[JsonDict, ...] = ()


class Notice(NamedTuple):
    """Something that the user should know: a retry, a compaction, a repaired answer."""

    text: str


class MessageEnded(NamedTuple):
    """One answer of the model is complete, and is in the conversation."""

    message: JsonDict
    usage: Usage


class TurnEnded(NamedTuple):
    """The agent waits for the user again. `usage` is that of the whole turn."""

    end: End
    answer: str
    usage: Usage
    model_calls: int
    reason: str = ""


Event = (
    TextDelta
    | ReasoningDelta
    | ToolStarted
    | ToolWaiting
    | ToolProgress
    | ToolEnded
    | Notice
    | MessageEnded
    | TurnEnded
)

"""The events of a turn, in the order in which things happen, one value per event; and what it has used of its budgets."""

import time
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

    def plus(self, other: "Usage") -> "Usage":
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


def payload_of(event: Event) -> JsonDict:
    """An event's fields, for JSON."""
    fields: JsonDict = event._asdict()
    for name, value in fields.items():
        fields[name] = value._asdict() if hasattr(value, "_asdict") else getattr(value, "value", value)
    return fields


class Budgets(NamedTuple):
    """What one turn may use before the agent stops. None means no limit."""

    model_calls: int | None = 90
    tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None


DEFAULT_BUDGETS = Budgets()


class Turn:
    """What one turn has used so far. Child agents count, except for their model calls, which have their own limit."""

    def __init__(self, budgets: Budgets) -> None:
        self._budgets = self._granted = budgets
        self._began = time.monotonic()
        self.usage, self.model_calls, self.answer = Usage(), 0, ""

    def note(self, usage: Usage, message: JsonDict) -> None:
        self.charge(usage)
        self.model_calls += 1
        self.answer = str(message.get("content") or "")

    def charge(self, usage: Usage) -> None:
        self.usage = self.usage.plus(usage)

    def seconds_left(self) -> float | None:
        limit = self._budgets.seconds
        return None if limit is None else max(0.0, limit - (time.monotonic() - self._began))

    def left(self) -> Budgets:
        """What is left, also for child agents of this turn."""
        budgets, used = self._budgets, self.usage
        tokens = None if budgets.tokens is None else max(0, budgets.tokens - used.input_tokens - used.output_tokens)
        cost = None if budgets.cost is None else max(0.0, budgets.cost - (used.cost or 0.0))
        return Budgets(budgets.model_calls, tokens, self.seconds_left(), cost)

    def extend(self, end: End) -> None:
        """Allow as much again of what was used up."""
        limits, more = self._budgets, self._granted
        if end is End.TIME:
            self._began = time.monotonic()
        elif end is End.TURNS:
            self._budgets = limits._replace(model_calls=self.model_calls + (more.model_calls or 0))
        elif end is End.TOKENS:
            used = self.usage.input_tokens + self.usage.output_tokens
            self._budgets = limits._replace(tokens=used + (more.tokens or 0))
        else:
            self._budgets = limits._replace(cost=(self.usage.cost or 0.0) + (more.cost or 0.0))

    def over(self) -> End | None:
        left = self.left()
        if left.model_calls is not None and self.model_calls >= left.model_calls:
            return End.TURNS
        for end, rest in ((End.TOKENS, left.tokens), (End.TIME, left.seconds), (End.COST, left.cost)):
            if rest == 0:
                return end
        return None

    def ended(self, end: End, reason: str = "") -> TurnEnded:
        return TurnEnded(end, self.answer, self.usage, self.model_calls, reason)

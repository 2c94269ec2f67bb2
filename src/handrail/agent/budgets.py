"""The limits of one turn, and what it has used so far."""

from __future__ import annotations

import time
from typing import NamedTuple

from ..types import JsonDict
from .events import End, TurnEnded, Usage


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

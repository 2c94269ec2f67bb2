"""Ask a user who is not at the terminal: at a target where users can reply."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from ..base.workers import Turns
from ..errors import ToolFailed
from .table import target_of


class RemoteUser:
    """A user at a target. One question at a time; after `seconds` without a reply the answer is None."""

    def __init__(self, name: str, targets: Mapping[str, Mapping[str, Any]], *, seconds: float) -> None:
        self._name, self._targets, self._seconds = name, targets, seconds
        self._turns = Turns()

    async def ask(self, question: str, choices: Sequence[str]) -> str | None:
        target = target_of(self._name, self._targets)
        ask = getattr(target, "ask", None)
        if ask is None:
            raise ToolFailed(f"messages.person names {self._name!r}, where nobody can write back; tell the user")
        turn = self._turns.take()
        try:
            await asyncio.wrap_future(turn)
            answer = await ask(_worded(question, choices), seconds=self._seconds)
            return None if answer is None else chosen(answer, choices)
        finally:
            self._turns.leave(turn)


def chosen(answer: str, choices: Sequence[str]) -> str:
    """The choice that a number stands for; any other answer unchanged."""
    answer = answer.strip()
    if answer.isascii() and answer.isdigit() and 1 <= int(answer) <= len(choices):
        return choices[int(answer) - 1]
    return answer


def _worded(question: str, choices: Sequence[str]) -> str:
    numbered = [f"{number}. {choice}" for number, choice in enumerate(choices, 1)]
    hint = f"Answer with 1-{len(choices)}, or in your own words." if choices else "Answer here."
    return "\n".join([question, *numbered, hint])

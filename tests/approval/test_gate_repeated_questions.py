"""The same question in one message of the model is asked once, and a no carries its reason."""

from __future__ import annotations

import asyncio
from typing import Any

from handrail.protocols import Answer, ApprovalRequest, Decision
from handrail.runtime.batches import Batches
from tests.support import call, error_in

from .gate_support import IN_HOME, IN_PROJECT, Async, gate, shell


def answered(commands: list[str], *answers: Answer, batches: int = 1) -> tuple[list[str], list[str], list[Any]]:
    """What ran, what was asked and the results, when the commands come in one message (or the same in several)."""
    ran: list[str] = []
    asked: list[str] = []

    async def decide(request: ApprovalRequest) -> Answer:
        asked.append(request.text)
        return answers[len(asked) - 1]

    running = Batches(shell(ran, gate(), Async(decide)))

    async def run() -> list[Any]:
        message = [call("terminal", f"c{number}", command=text) for number, text in enumerate(commands)]
        return [result for _ in range(batches) for result in await running.run(message)]

    results = asyncio.run(run())
    return ran, asked, results


YES, NO = Answer(Decision.ONCE), Answer(Decision.DENY, "ada", "move it to trash/ instead")


def test_one_answer_is_for_all_calls_that_ask_the_same() -> None:
    ran, asked, _ = answered([IN_PROJECT, IN_PROJECT, IN_PROJECT], YES)
    assert asked == [IN_PROJECT]
    assert ran == [IN_PROJECT] * 3


def test_another_text_is_another_question() -> None:
    ran, asked, _ = answered([IN_PROJECT, IN_HOME, IN_PROJECT], YES, NO)
    assert asked == [IN_PROJECT, IN_HOME]
    assert ran == [IN_PROJECT] * 2


def test_the_next_message_asks_again() -> None:
    ran, asked, _ = answered([IN_PROJECT], YES, NO, batches=2)
    assert asked == [IN_PROJECT] * 2
    assert ran == [IN_PROJECT]


def test_a_no_is_for_all_of_them_and_each_says_why() -> None:
    ran, asked, results = answered([IN_PROJECT, IN_PROJECT], NO)
    assert (ran, asked) == ([], [IN_PROJECT])
    for result in results:
        assert "denied by ada: move it to trash/ instead" in error_in(result["content"])["error"]

"""`clarify` asks the user, where they are."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from handrail.core.registry import ToolRegistry
from handrail.runtime.dispatch import Runtime
from tests.support import error_in


class Ada:
    """Someone who answers, and remembers what she was asked."""

    def __init__(self, answer: str | None = "the second") -> None:
        self.answer = answer
        self.asked: list[tuple[str, list[str]]] = []

    def ask(self, question: str, choices: Sequence[str]) -> str | None:
        self.asked.append((question, list(choices)))
        return self.answer


def test_the_question_reaches_the_person_and_the_answer_the_model(default_registry: ToolRegistry) -> None:
    ada = Ada()
    runtime = Runtime(default_registry, person=ada)
    answer = json.loads(
        runtime.handle("clarify", {"question": " Which one? ", "choices": ["the first", " ", "the second "]})
    )
    assert answer == {"question": "Which one?", "answer": "the second", "answered": True}
    assert ada.asked == [("Which one?", ["the first", "the second"])]


@pytest.mark.parametrize("person", [None, Ada(answer=None)], ids=["nobody there", "no answer"])
def test_without_an_answer_the_model_is_told_to_go_on(default_registry: ToolRegistry, person: Ada | None) -> None:
    error = error_in(Runtime(default_registry, person=person).handle("clarify", {"question": "Which?"}))
    assert error["answered"] is False
    assert "assumption" in error["error"]


@pytest.mark.parametrize("question", ["", "   "])
def test_an_empty_question_is_not_asked(default_registry: ToolRegistry, question: str) -> None:
    ada = Ada()
    assert error_in(Runtime(default_registry, person=ada).handle("clarify", {"question": question}))
    assert ada.asked == []


def test_an_empty_answer_is_an_answer(default_registry: ToolRegistry) -> None:
    answer = json.loads(Runtime(default_registry, person=Ada("")).handle("clarify", {"question": "Anything else?"}))
    assert answer["answered"] is True


def test_someone_who_fails_to_answer_breaks_nothing(default_registry: ToolRegistry) -> None:
    class Gone(Ada):
        def ask(self, question: str, choices: Sequence[str]) -> str | None:
            raise ConnectionError("the chat is closed")

    assert (
        "the chat is closed"
        in error_in(Runtime(default_registry, person=Gone()).handle("clarify", {"question": "?"}))["error"]
    )

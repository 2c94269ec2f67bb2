"""`clarify` at a terminal, and without one."""

from __future__ import annotations

import json

import pytest

from .conftest import Cli

QUESTION = ("call", "clarify", "question=Which colour?", 'choices:=["red", "blue"]', "--json")


@pytest.mark.parametrize(("typed", "answer"), [("2\n", "blue"), ("green\n", "green"), ("\n1\n", "red"), ("7\n", "7")])
def test_an_answer_is_a_number_or_free_text(cli: Cli, typed: str, answer: str) -> None:
    with cli.terminal(*QUESTION, NO_COLOR="1") as terminal:
        terminal.wait_for("1-2, or your own words: ")
        terminal.type(typed)
        assert terminal.end() == 0
    assert "? Which colour?\n  1  red\n  2  blue\n" in terminal.shown
    assert f'"answer": {json.dumps(answer)}' in terminal.shown


def test_the_end_of_input_is_no_answer(cli: Cli) -> None:
    with cli.terminal(*QUESTION, NO_COLOR="1") as terminal:
        terminal.wait_for("own words: ")
        terminal.type("\x04")
        assert terminal.end() == 1
    assert "nobody answered" in terminal.shown


def test_ctrl_c_at_a_question_ends_the_command(cli: Cli) -> None:
    with cli.terminal(*QUESTION) as terminal:
        terminal.wait_for("own words: ")
        terminal.interrupt()
        assert terminal.end() == 130
    assert "Fatal Python error" not in terminal.shown
    assert "Traceback" not in terminal.shown


def test_without_a_terminal_there_is_nobody_to_ask(cli: Cli) -> None:
    ran = cli(*QUESTION)
    assert ran.code == 1
    assert ran.json["answered"] is False

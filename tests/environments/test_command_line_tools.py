"""Asking a program by its command line: what it said, line by line if wanted, and never for longer than allowed."""

from __future__ import annotations

import pytest

from handrail.environments import command_line_tools

from ..support import takes_less_than


def test_what_it_printed_and_what_it_complained_are_apart() -> None:
    answer = command_line_tools.ask(["bash", "-c", "echo out; echo why >&2; exit 3"], seconds=60)
    assert answer == (3, "out\n", "why")
    assert not answer.ok


def test_colours_are_left_out_of_what_it_complained() -> None:
    assert (
        command_line_tools.ask(["bash", "-c", r"printf '\e[31mFATAL:\e[0m no' >&2"], seconds=60).message == "FATAL: no"
    )


def test_one_that_is_not_there_is_an_answer() -> None:
    answer = command_line_tools.ask(["/proc/nowhere/program"], seconds=60)
    assert answer.code == 127
    assert "cannot be run" in answer.message


@pytest.mark.parametrize("listens", [True, False])
def test_one_that_hangs_is_ended_with_what_it_started(listens: bool) -> None:
    with takes_less_than(30):
        answer = command_line_tools.ask(
            ["bash", "-c", "echo begun; sleep 1000 & sleep 1000"],
            seconds=0.3,
            listener=(lambda _: None) if listens else None,
        )
    assert answer.code is None
    assert answer.message == "timed out after 0.3 s"


def test_lines_are_told_as_they_come_and_progress_bars_are_lines() -> None:
    told: list[str] = []
    answer = command_line_tools.ask(
        ["bash", "-c", "printf '1\\r2\\r\\n'; echo; echo three >&2; exit 1"], seconds=60, listener=told.append
    )
    assert told == ["1", "2", "three"]
    assert answer.code == 1
    assert answer.message.endswith("three")


def test_a_listener_that_fails_ends_the_program() -> None:
    def fail(_: str) -> None:
        raise ValueError("no")

    with takes_less_than(30), pytest.raises(ValueError, match="no"):
        command_line_tools.ask(["bash", "-c", "echo x; sleep 1000"], seconds=100, listener=fail)

"""An answer in pieces: what is complete is set at once, whatever the pieces were."""

from __future__ import annotations

import pytest

from handrail.cli.chat.view import Answer

TEXT = "# Title\n\nOne\ntwo.\n\n```python\na = 1\n\nb = 2\n```\n\n- x\n- y"
PARTS = ["# Title", "One\ntwo.", "```python\na = 1\n\nb = 2\n```", "- x\n- y"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_the_parts_do_not_depend_on_the_pieces(size: int) -> None:
    parts: list[str] = []
    answer = Answer(parts.append)
    for start in range(0, len(TEXT), size):
        answer.add(TEXT[start : start + size])
    answer.finish()
    assert parts == PARTS


def test_a_part_is_set_as_soon_as_it_is_complete_and_the_rest_stands_below() -> None:
    parts: list[str] = []
    answer = Answer(parts.append)
    answer.add("first\n\nsecond li")
    assert parts == ["first"]
    assert answer.tail(width=40, most=5) == ["second li"]
    answer.add("ne is longer than the screen is wide")
    assert answer.tail(width=20, most=5) == ["second line is", "longer than the", "screen is wide"]
    assert answer.tail(width=20, most=2) == ["longer than the", "screen is wide"]


def test_code_that_never_ends_is_set_in_pieces_that_are_code() -> None:
    parts: list[str] = []
    answer = Answer(parts.append)
    answer.add("```sh\n" + "echo\n" * 450)
    answer.finish()
    assert len(parts) == 3
    assert all(part.startswith("```sh\n") and part.endswith("\n```") for part in parts)
    assert sum(part.count("echo") for part in parts) == 450


def test_a_line_that_never_ends_is_not_kept_forever() -> None:
    parts: list[str] = []
    answer = Answer(parts.append)
    for _ in range(2_000):
        answer.add("word " * 4)
    assert sum(map(len, parts)) > 30_000
    assert "\x1b" not in "".join(answer.tail(80, 5))


def test_the_tail_shows_what_a_terminal_would_obey() -> None:
    answer = Answer(lambda part: None)
    answer.add("a \x1b[2J b")
    assert answer.tail(80, 5) == [r"a \x1b[2J b"]


def test_what_was_begun_does_not_leak_into_the_next_answer() -> None:
    parts: list[str] = []
    answer = Answer(parts.append)
    answer.add("```\ncut off")
    answer.finish()
    answer.add("next\n\n")
    assert parts[-1] == "next"

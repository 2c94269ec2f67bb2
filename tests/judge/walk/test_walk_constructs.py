"""A dangerous command stays one inside every construct of the shell that runs it, and inside two of them."""

from __future__ import annotations

import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from handrail.judge import assess

LINES = (Path(__file__).parents[1] / "labelled" / "constructs.txt").read_text().splitlines()
CONSTRUCTS = [line.replace("⏎", "\n") for line in LINES if line[:2] != "# "]
IN_TURN = [line for line in CONSTRUCTS if "'" not in line and "@TEXT" in line]
"""Those that may hold another one: no quotes of their own, and a text of any shape."""
DANGEROUS = "rm -rf ~", "git push --force origin main", "dd if=/dev/zero of=/dev/sda", "chmod -R 777 /etc"


def inside(construct: str, command: str) -> str:
    for place, text in (("@RUN", command), ("@TEXT", shlex.quote(command)), ("@WORDS", command)):
        construct = construct.replace(place, text)
    return construct


@pytest.mark.parametrize("command", DANGEROUS)
def test_no_construct_hides_a_command(command: str) -> None:
    assert not [text for one in CONSTRUCTS if not assess(text := inside(one, command)).dangerous]


def test_no_two_constructs_hide_a_command() -> None:
    far = [*IN_TURN[7:], *IN_TURN[:7]]
    couples = [*pairwise(IN_TURN), *zip(IN_TURN, far, strict=True), *zip(far, IN_TURN, strict=True)]
    texts = [inside(outer, inside(inner, "rm -rf ~")) for outer, inner in couples]
    assert not [text for text in texts if not assess(text).dangerous]


def test_harmless_commands_pass_in_most_constructs() -> None:
    """The constructs alone are no reason to ask, but for those that change what runs by itself or where."""
    asked = [one for one in CONSTRUCTS if assess(inside(one, "echo hello")).dangerous]
    assert len(asked) < len(CONSTRUCTS) / 4, asked

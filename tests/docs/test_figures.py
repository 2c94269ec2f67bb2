"""The figures of the README are those that the bench recorded, and counts are those of the code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from handrail.testing import environment_checks

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
# A row of the README's table, and the rows of the bench that it shows.
ROWS = {
    "cold start: import, list all tools, call one": ["cold start: import, list all tools, call one"],
    "call a sync tool from JSON text": ["call a sync tool, validated"],
    "call an async tool inside a loop": ["call an async tool, in a loop"],
    "list 1,000 tools again": ["list them again, a copy each"],
    "100 parallel calls of 50 ms, sync / async tools": [
        "100 parallel calls of 50 ms, sync tools",
        "100 parallel calls of 50 ms, async tools",
    ],
}


def _recorded(what: str) -> str:
    """As the README writes it. `python -m bench core --record` records anew."""
    ratios = json.loads((ROOT / "bench" / "recorded" / "core.json").read_text())
    return f"{ratios[what]:.1f}"


@pytest.mark.parametrize("row", ROWS)
def test_a_row_of_the_readme_is_what_the_bench_recorded(row: str) -> None:
    (cell,) = re.findall(rf"^ *\| {re.escape(row)} \| ([^|]+) \|", README, re.MULTILINE)
    assert cell.partition(",")[0] == " / ".join(map(_recorded, ROWS[row]))


def test_every_row_of_the_table_is_tested() -> None:
    table = README.partition("| what, as a ratio")[2].partition("\n\n")[0]
    assert [line.split("|")[1].strip() for line in table.splitlines()[2:]] == list(ROWS)


def test_the_sentence_above_the_table_says_the_same() -> None:
    (figure,) = re.findall(r"A validated call costs ([\d.]+) times", README)
    assert figure == _recorded("call a sync tool, validated")


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/write-a-backend.md"])
def test_the_number_of_checks_is_that_of_the_kit(page: str) -> None:
    assert f"{len(environment_checks())} checks" in (ROOT / page).read_text()

"""The dated table of list prices."""

from __future__ import annotations

import re

from handrail.agent.events import Usage
from handrail.agent.models.model_selection import as_of, list_prices


def test_the_longest_beginning_of_a_name_counts() -> None:
    assert list_prices("gpt-5-mini-2025-08-07") == (0.25, 2)
    assert list_prices("gpt-5") == (1.25, 10)
    assert list_prices("anthropic/claude-sonnet-4-5") == (3, 15)
    assert list_prices("no-such-model") == (0, 0)


def test_a_cost_follows_from_it_and_the_table_is_dated() -> None:
    assert list_prices("gpt-5").added_to(Usage(1_000_000, 100_000)).cost == 2.25
    assert re.fullmatch(r"20\d\d-\d\d", as_of())

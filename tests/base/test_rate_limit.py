"""How often something may happen: for each key on its own, and what is refused counts only where that is wanted."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from handrail.base import rate_limit
from handrail.base.rate_limit import RateLimit

_TIMES = (0.0, 1.0, 2.0, 9.0, 10.5, 10.6, 11.5, 21.6)


@pytest.mark.parametrize(
    ("counts_refused", "allowed"),
    [
        (False, [True, True, False, False, True, False, True, True]),
        (True, [True, True, False, False, False, False, False, True]),
    ],
)
def test_what_is_refused_counts_only_where_that_is_wanted(
    monkeypatch: pytest.MonkeyPatch, counts_refused: bool, allowed: list[bool]
) -> None:
    monkeypatch.setattr(rate_limit, "time", SimpleNamespace(monotonic=iter(_TIMES).__next__))
    limit = RateLimit(2, 10, counts_refused=counts_refused)
    assert [limit.allows() for _ in _TIMES] == allowed


def test_each_key_has_a_limit_of_its_own() -> None:
    limit = RateLimit(1, 60)
    assert [limit.allows(key) for key in ("one", "one", "another")] == [True, False, True]


def test_many_keys_lift_the_limit_of_the_oldest_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "_MAX_KEYS", 3)
    limit = RateLimit(1, 60)
    assert all(limit.allows(key) for key in ("oldest", "a", "b", "c"))
    assert [limit.allows(key) for key in ("b", "c", "oldest")] == [False, False, True]

"""How often something may happen: for each key on its own, and again after a pause."""

from __future__ import annotations

import pytest

from handrail.base import rate_limit
from handrail.base.rate_limit import RateLimit


def test_a_limit_holds_for_each_key_until_there_was_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 1.0, 2.0, 9.0, 10.5, 20.6, 20.7])
    monkeypatch.setattr(rate_limit.time, "monotonic", lambda: next(times))
    limit = RateLimit(2, 10)
    assert [limit.allows("one") for _ in range(6)] == [True, True, False, False, False, True]
    assert limit.allows("another")

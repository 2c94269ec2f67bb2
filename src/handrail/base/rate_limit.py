"""How often something may happen."""

from __future__ import annotations

import time
from collections import deque

_MAX_KEYS = 10_000


class RateLimit:
    """At most `maximum` times in `seconds`, for each key (an address, a user). What is refused counts too: who goes on has to
    pause."""

    def __init__(self, maximum: int, seconds: float) -> None:
        self._maximum, self._seconds = maximum, seconds
        self._times: dict[str, deque[float]] = {}

    def allows(self, key: str = "") -> bool:
        """Count one more; False if it is too often."""
        if len(self._times) > _MAX_KEYS:
            self._times.clear()
        times, now = self._times.setdefault(key, deque(maxlen=self._maximum)), time.monotonic()
        is_over = len(times) == self._maximum and now - times[0] < self._seconds
        times.append(now)
        return not is_over

"""How often something may happen."""

import time
from collections import deque

_MAX_KEYS = 10_000


class RateLimit:
    """At most `maximum` times in `seconds`, for each key (an address, a user). With `counts_refused` one has to pause first."""

    def __init__(self, maximum: int, seconds: float, *, counts_refused: bool = False) -> None:
        self._maximum, self._seconds, self._counts_refused = maximum, seconds, counts_refused
        self._times: dict[str, deque[float]] = {}

    def allows(self, key: str = "") -> bool:
        """Whether one more is allowed; if so it counts."""
        times, now = self._times.setdefault(key, deque(maxlen=self._maximum)), time.monotonic()
        if len(self._times) > _MAX_KEYS:  # only the oldest is forgotten: many keys must not lift the limit of all
            self._times.pop(next(iter(self._times)), None)
        is_over = len(times) == self._maximum and now - times[0] < self._seconds
        if not is_over or self._counts_refused:
            times.append(now)
        return not is_over

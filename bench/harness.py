"""Compare two ways of doing something in one process, so that a busy machine troubles both alike."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

Batch = Callable[[int], object]


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the table. `ratio` is ours over the floor's; `limit` is what we hold ourselves to."""

    what: str
    ours: str
    floor: str
    ratio: float
    limit: float | None = None
    peers: str = ""

    @property
    def held(self) -> bool:
        return self.limit is None or self.ratio <= self.limit


def paired(ours: Batch, floor: Batch, *, rounds: int = 21, batch_seconds: float = 0.02) -> tuple[float, float, float]:
    """Seconds an operation of ours, of the floor's, and the median of their ratios batch by batch."""
    count, floor_count = _size(ours, batch_seconds), _size(floor, batch_seconds)
    mine, base, ratios = [], [], []
    for _ in range(rounds):
        base.append(_timed(floor, floor_count) / floor_count)
        mine.append(_timed(ours, count) / count)
        ratios.append(mine[-1] / base[-1])
    return statistics.median(mine), statistics.median(base), statistics.median(ratios)


def alternating(
    ours: Callable[[], float], floor: Callable[[], float], *, rounds: int = 7
) -> tuple[float, float, float]:
    """The same for things that time themselves and are too long to batch."""
    ours(), floor()
    mine, base, ratios = [], [], []
    for _ in range(rounds):
        gc.collect()
        base.append(floor())
        mine.append(ours())
        ratios.append(mine[-1] / base[-1])
    return statistics.median(mine), statistics.median(base), statistics.median(ratios)


def microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.2f} µs"


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"


def _size(batch: Batch, target: float) -> int:
    batch(1)  # the first one may start something
    count = 1
    while (elapsed := _timed(batch, count)) < target / 4 and count < 1_000_000:
        count *= 4
    return max(1, int(count * target / max(elapsed, 1e-9)))


def _timed(batch: Batch, count: int) -> float:
    start = time.perf_counter()
    batch(count)
    return time.perf_counter() - start

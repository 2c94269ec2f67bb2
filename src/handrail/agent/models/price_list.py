"""List prices of well-known models, from a dated table: what a provider really charges may differ."""

from __future__ import annotations

import functools
from pathlib import Path

from .base import NO_PRICES, Prices


def list_prices(model: str) -> Prices:
    """Those of the model, by the longest beginning of its name that the table has; unknown ones are 0."""
    name = model.rpartition("/")[2]  # some providers put the maker before the name
    fitting = [known for known in _table() if name.startswith(known)]
    return Prices(*_table()[max(fitting, key=len)]) if fitting else NO_PRICES


def as_of() -> str:
    """The month that the table is from."""
    return next(line.split()[1] for line in _lines() if line.startswith("as-of "))


@functools.cache
def _table() -> dict[str, tuple[float, float]]:
    rows = (line.split() for line in _lines() if not line.startswith("as-of "))
    return {name: (float(sent), float(answered)) for name, sent, answered in rows}


def _lines() -> list[str]:
    text = Path(__file__).with_suffix(".txt").read_text("utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]

"""Which programs may be given the path of a protected file: those that look at names only, and those that only read."""

from __future__ import annotations

import functools
from pathlib import Path


@functools.cache
def path_readers(kind: str) -> frozenset[str]:
    """`names` or `readers`, as `path_readers.txt` lists them."""
    lines = Path(__file__).with_suffix(".txt").read_text("utf-8").splitlines()
    prefix = f"{kind}: "
    return frozenset(name for line in lines if line.startswith(prefix) for name in line[len(prefix) :].split())

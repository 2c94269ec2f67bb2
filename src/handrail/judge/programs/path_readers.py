"""Which programs may be given the path of a protected file: those that look at names only, and those that only read."""

from __future__ import annotations

import functools

from ..values.data_files import read_tables


@functools.cache
def path_readers(kind: str) -> frozenset[str]:
    """`names` or `readers`, as `path_readers.txt` lists them."""
    return frozenset(read_tables(__file__)[""][kind].split())

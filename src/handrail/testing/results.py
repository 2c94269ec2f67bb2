"""A result store in memory."""

from __future__ import annotations

import itertools

from ..errors import ResultNotFound
from ..protocols import StoredResult


class MemoryResultStore:
    """A `ResultStore` in a dictionary. Ids are consecutive, so that a test can name them."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self._numbers = itertools.count(1)

    def put(self, tool: str, text: str) -> StoredResult:
        result_id = f"r_{next(self._numbers):016x}"
        self.texts[result_id] = text
        return StoredResult(result_id, tool, len(text), text.count("\n") + 1)

    def writer(self, tool: str) -> MemoryResultWriter:
        return MemoryResultWriter(self, tool)

    def get(self, result_id: str) -> str:
        try:
            return self.texts[result_id]
        except KeyError:
            raise ResultNotFound(f"no result {result_id!r}; known: {', '.join(self.texts) or 'none'}") from None


class MemoryResultWriter:
    def __init__(self, store: MemoryResultStore, tool: str) -> None:
        self._store, self._tool = store, tool
        self._pieces: list[str] = []

    def write(self, text: str) -> None:
        self._pieces.append(text)

    def finish(self) -> StoredResult:
        return self._store.put(self._tool, "".join(self._pieces))

    def discard(self) -> None:
        self._pieces.clear()

"""Which of a message's calls must wait for which earlier ones.

A call waits for every earlier one that touches what it touches, where at least one of the two writes. A read-only tool
that names no resources waits for nobody. A tool that says nothing about itself runs alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..tools.registry import ToolEntry
    from ..types import JsonDict


class Ordering:
    """Fed with calls in the model's order; the cost of one does not grow with the number of calls before it."""

    def __init__(self) -> None:
        self._barrier: int | None = None
        self._since_barrier: list[int] = []
        self._forget_paths()

    def add(self, index: int, entry: ToolEntry, arguments: JsonDict) -> set[int]:
        """The earlier calls that this one must wait for."""
        waits_for = set() if self._barrier is None else {self._barrier}
        if entry.resources is None and not entry.read_only:
            return self._alone(index, waits_for)
        if entry.resources is not None:
            try:
                resources = entry.resources(arguments)
                reads, writes = list(map(_steps, resources.reads)), list(map(_steps, resources.writes))
            except Exception:  # noqa: BLE001  a tool that cannot say what it touches may touch anything
                return self._alone(index, waits_for)
            for path in reads:
                waits_for |= self._others(path, self._writes, self._writes_below)
            for path in writes:
                waits_for |= self._others(path, self._writes, self._writes_below)
                waits_for |= self._others(path, self._reads, self._reads_below)
            for path in reads:
                self._note(index, path, self._reads, self._reads_below)
            for path in writes:
                self._note(index, path, self._writes, self._writes_below)
        self._since_barrier.append(index)
        waits_for.discard(index)
        return waits_for

    def _alone(self, index: int, waits_for: set[int]) -> set[int]:
        waits_for.update(self._since_barrier)
        self._barrier, self._since_barrier = index, []
        self._forget_paths()
        return waits_for

    def _forget_paths(self) -> None:
        self._reads: dict[str, list[int]] = {}
        self._writes: dict[str, list[int]] = {}
        self._reads_below: dict[str, list[int]] = {}
        self._writes_below: dict[str, list[int]] = {}

    @staticmethod
    def _others(path: list[str], at: dict[str, list[int]], below: dict[str, list[int]]) -> set[int]:
        found = {index for step in path for index in at.get(step, ())}
        found.update(below.get(path[-1], ()))
        return found

    @staticmethod
    def _note(index: int, path: list[str], at: dict[str, list[int]], below: dict[str, list[int]]) -> None:
        at.setdefault(path[-1], []).append(index)
        for step in path[:-1]:
            below.setdefault(step, []).append(index)


def _steps(name: str) -> list[str]:
    """A name and everything above it, from the top: "/a/b" gives "", "/a", "/a/b"."""
    parts = name.rstrip("/").split("/")
    return ["/".join(parts[: end + 1]) for end in range(len(parts))]

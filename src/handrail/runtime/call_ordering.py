"""Which of a message's calls must wait for which earlier ones.

A call waits for every earlier one that touches what it touches, where at least one of the two writes. A read-only tool
that names no resources waits for nobody. A tool that says nothing about itself runs alone.
"""

from __future__ import annotations

import inspect

from ..core.registry import ToolEntry
from ..types import JsonDict, Resources, ToolContext


class Ordering:
    """Fed with calls in the model's order. Only what is needed is named: who waits for a writer need not also wait for
    those that the writer waited for."""

    def __init__(self) -> None:
        self._barrier: int | None = None
        self._since_barrier: list[int] = []
        self._forget_paths()

    def add(self, index: int, entry: ToolEntry, arguments: JsonDict, context: ToolContext | None = None) -> set[int]:
        """The earlier calls that this one must wait for, directly or through those named here."""
        if entry.resources is None and not entry.read_only:
            return self._alone(index)
        waits_for = set() if self._barrier is None else {self._barrier}
        if entry.resources is not None:
            try:
                resources = _resources(entry, arguments, context)
                reads, writes = list(map(_steps, resources.reads)), list(map(_steps, resources.writes))
            except Exception:  # noqa: BLE001  a tool that cannot say what it touches may touch anything
                return self._alone(index)
            for path in reads:
                waits_for |= self._touching(path, self._writes)
            for path in writes:
                waits_for |= self._touching(path, self._writes) | self._touching(path, self._reads)
            for path in reads:
                self._reads.note(index, path)
            for path in writes:
                self._writes.note(index, path)
        self._since_barrier.append(index)
        waits_for.discard(index)
        return waits_for

    def _alone(self, index: int) -> set[int]:
        waits_for = {*self._since_barrier} if self._barrier is None else {self._barrier, *self._since_barrier}
        self._barrier, self._since_barrier = index, []
        self._forget_paths()
        return waits_for

    def _forget_paths(self) -> None:
        self._reads, self._writes = _Accesses(), _Accesses()

    def _touching(self, path: list[str], accesses: _Accesses) -> set[int]:
        # A writer at this path or above it has already waited for everything before it that could matter here.
        covering = max((self._writes.last(step) for step in path), default=-1)
        return accesses.touching(path, since=covering)


def _resources(entry: ToolEntry, arguments: JsonDict, context: ToolContext | None) -> Resources:
    """What the call says that it touches: by its arguments, or by these and where it runs."""
    function = entry.resources
    assert function is not None
    return function(arguments, context) if len(inspect.signature(function).parameters) > 1 else function(arguments)


class _Accesses:
    """Who read, or who wrote, which names: at each name, and somewhere below it."""

    def __init__(self) -> None:
        self._at: dict[str, list[int]] = {}
        self._below: dict[str, list[int]] = {}

    def last(self, name: str) -> int:
        return self._at[name][-1] if name in self._at else -1

    def note(self, index: int, path: list[str]) -> None:
        self._at.setdefault(path[-1], []).append(index)
        for step in path[:-1]:
            self._below.setdefault(step, []).append(index)

    def touching(self, path: list[str], *, since: int) -> set[int]:
        found: set[int] = set()
        for indices in (*(self._at.get(step, ()) for step in path), self._below.get(path[-1], ())):
            for index in reversed(indices):  # in ascending order, so that the newer ones are at the end
                if index < since:
                    break
                found.add(index)
        return found


def _steps(name: str) -> list[str]:
    """A name and everything above it, from the top: "/a/b" gives "", "/a", "/a/b"."""
    parts = name.rstrip("/").split("/")
    return ["/".join(parts[: end + 1]) for end in range(len(parts))]

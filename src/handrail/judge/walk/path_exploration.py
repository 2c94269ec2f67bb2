"""Follow a command along every path that is possible: a variable that may be `rm` or `ls` is judged as both."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from ..values.word_values import Either, Value, unknown
from .state import Changes, State

T = TypeVar("T")
MAX_PATHS = 12


class PathExploration:
    """Which option was taken where, while one command is walked again and again."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._taken: dict[object, int] = {}
        self._kept: dict[object, Either] = {}
        """What was picked from: kept alive, so that no other value gets its identity."""
        self._fresh: list[tuple[object, int]] | None = None
        """What was picked for the first time in the command at hand, and out of how many."""
        self._give_up = False

    def pick(self, key: object, value: Either) -> Value | None:
        if self._give_up:
            return unknown(value.taints)
        number = self._taken.get(key)
        if number is None:
            number = self._taken[key] = 0
            self._kept[key] = value
            if self._fresh is None:
                self._fresh = []
            self._fresh.append((key, len(value.options)))
        return value.options[number] if number < len(value.options) else unknown(value.taints)

    def each(self, function: Callable[..., T], *arguments: Any) -> list[T]:
        """What the function returns on each path. What it changes is one of several possibilities afterwards."""
        outer = self._fresh
        self._fresh = None
        mark = self._state.mark()
        first = function(*arguments)
        fresh = self._fresh
        results = self._others(partial(function, *arguments), first, fresh, mark) if fresh else [first]
        self._fresh = outer
        return results

    def _others(self, work: Callable[[], T], first: T, fresh: list[tuple[object, int]], mark: int) -> list[T]:
        results, branches = [first], [self._state.take_back(mark)]
        waiting: list[dict[object, int]] = _neighbours({}, fresh)
        self._forget(fresh)
        while waiting:
            if len(results) >= MAX_PATHS:
                results.append(self._without_picking(work, mark, branches))
                break
            taken = waiting.pop()
            self._taken.update(taken)
            self._fresh = None
            results.append(work())
            branches.append(self._state.take_back(mark))
            fresh = self._fresh or []
            waiting += _neighbours(taken, fresh)
            self._forget([*fresh, *((key, 0) for key in taken)])
        self._fresh = None
        self._state.one_of(branches)
        return results

    def _without_picking(self, work: Callable[[], T], mark: int, branches: list[Changes]) -> T:
        """Too many paths: what is not decided counts as unknown."""
        outer, self._give_up = self._give_up, True
        try:
            return work()
        finally:
            self._give_up = outer
            branches.append(self._state.take_back(mark))

    def _forget(self, picked: list[tuple[object, int]]) -> None:
        for key, _ in picked:
            self._taken.pop(key, None)
            self._kept.pop(key, None)


def _neighbours(taken: dict[object, int], fresh: list[tuple[object, int]]) -> list[dict[object, int]]:
    """The paths that differ in one of the fresh picks; those after it are open again."""
    found: list[dict[object, int]] = []
    before = dict(taken)
    for key, count in fresh:
        found += [{**before, key: number} for number in range(1, count)]
        before[key] = 0
    return found

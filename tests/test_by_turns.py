"""What is marked `by_turns` is tried in part, and nothing is left out altogether."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from .conftest import _take_turns


class _Item:
    """A test with these parameters, as pytest collects it."""

    path = Path("test_these.py")

    def __init__(self, function: str, marker: Any, **params: Any) -> None:
        self.nodeid = f"test_these.py::{function}[{params}]"
        self.case = function, *params.values()
        self.callspec = SimpleNamespace(params=params, indices={name: hash(value) for name, value in params.items()})
        self._marker = getattr(marker, "mark", None)

    def get_closest_marker(self, name: str) -> Any:
        return self._marker


def _kept(*items: _Item) -> list[tuple[Any, ...]]:
    dropped: list[_Item] = []
    config: Any = SimpleNamespace(hook=SimpleNamespace(pytest_deselected=lambda items: dropped.extend(items)))
    left: Any = list(items)
    _take_turns(config, left)
    assert sorted(item.case for item in [*left, *dropped]) == sorted(item.case for item in items)
    return [item.case for item in left]


def test_each_row_is_kept_once_and_all_values_are_met() -> None:
    marker = pytest.mark.by_turns("kind")
    cases = itertools.product(("first", "second"), "abc", (1, 2))
    kept = _kept(*(_Item(function, marker, kind=kind, row=row) for function, kind, row in cases))
    assert sorted(kept) == [("first", "a", 1), ("first", "b", 2), ("second", "a", 2), ("second", "c", 1)]


def test_only_the_values_of_a_group_take_turns() -> None:
    marker = pytest.mark.by_turns("kind", ("a", "b"))
    kept = _kept(*(_Item("test", marker, kind=kind, row=row) for kind in "abc" for row in (1, 2)))
    assert sorted(kept) == [("test", "a", 1), ("test", "b", 2), ("test", "c", 1), ("test", "c", 2)]


@pytest.mark.parametrize("marker", [None, pytest.mark.by_turns(), pytest.mark.by_turns("other")])
def test_what_is_not_marked_or_taken_out_is_kept(marker: Any) -> None:
    assert len(_kept(*(_Item("test", marker, kind=kind) for kind in "abc"))) == 3

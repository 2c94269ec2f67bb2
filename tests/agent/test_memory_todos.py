"""The list itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from handrail.agent.memory import Todos
from handrail.errors import InvalidArguments
from handrail.protocols import TodoItem
from tests.support import PATIENCE_SECONDS


def test_what_is_given_out_is_a_copy() -> None:
    todos = Todos()
    todos.replace([TodoItem("1", "a", "pending")])
    todos.items().clear()
    assert todos.items() == [TodoItem("1", "a", "pending")]


def test_the_order_is_the_models() -> None:
    todos = Todos()
    todos.replace([TodoItem(number, "x", "pending") for number in "312"])
    todos.merge([{"id": "1", "content": "y"}, {"id": "0", "content": "z"}])
    assert [item.id for item in todos.items()] == ["3", "1", "2", "0"]


def test_an_empty_field_changes_nothing() -> None:
    todos = Todos()
    todos.replace([TodoItem("1", "a", "in_progress")])
    todos.merge([{"id": "1", "content": "", "status": ""}])
    assert todos.items() == [TodoItem("1", "a", "in_progress")]


def test_a_list_that_grows_too_long_is_refused_whole() -> None:
    todos = Todos(max_items=2)
    todos.replace([TodoItem("1", "a", "pending")])
    with pytest.raises(InvalidArguments, match="at most 2"):
        todos.merge([{"id": "2", "content": "b"}, {"id": "3", "content": "c"}])
    assert [item.id for item in todos.items()] == ["1"]


def test_two_merges_at_once_lose_nothing() -> None:
    todos = Todos()
    begun, other_done = threading.Event(), threading.Event()

    class Slow(list[dict[str, str]]):
        def __iter__(self) -> Iterator[dict[str, str]]:
            begun.set()
            other_done.wait(0.5)  # the other one gets the chance to come in between
            return super().__iter__()

    slow = threading.Thread(target=todos.merge, args=(Slow([{"id": "slow", "content": "a"}]),))
    slow.start()
    assert begun.wait(PATIENCE_SECONDS)
    fast = threading.Thread(target=lambda: (todos.merge([{"id": "fast", "content": "b"}]), other_done.set()))
    fast.start()
    slow.join(PATIENCE_SECONDS)
    fast.join(PATIENCE_SECONDS)
    assert sorted(item.id for item in todos.items()) == ["fast", "slow"]

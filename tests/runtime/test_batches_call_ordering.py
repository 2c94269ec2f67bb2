"""Which calls wait for which."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.core.registry import ToolEntry, ToolRegistry
from handrail.runtime.batches import Ordering
from handrail.types import Resources, ToolContext
from tests.support import add, costs_less_than


def entry(*, read_only: bool = False, resources: Any = None) -> ToolEntry:
    registry = ToolRegistry()
    add(registry, "tool", read_only=read_only, resources=resources)
    found = registry.get_entry("tool")
    assert found is not None
    return found


EXCLUSIVE = entry()
FREE = entry(read_only=True)
FILES = entry(resources=lambda args: Resources(tuple(args.get("reads", ())), tuple(args.get("writes", ()))))
READS_FILES = entry(read_only=True, resources=lambda args: Resources(reads=tuple(args["reads"])))


def waits(*calls: tuple[ToolEntry, dict[str, Any]]) -> list[set[int]]:
    """For each call, every earlier one that is over when it starts, directly or through others."""
    ordering = Ordering()
    closed: list[set[int]] = []
    for index, (tool, arguments) in enumerate(calls):
        direct = ordering.add(index, tool, arguments)
        assert all(other < index for other in direct)
        closed.append(direct.union(*(closed[other] for other in direct)))
    return closed


def reads(*paths: str) -> tuple[ToolEntry, dict[str, Any]]:
    return FILES, {"reads": paths}


def writes(*paths: str) -> tuple[ToolEntry, dict[str, Any]]:
    return FILES, {"writes": paths}


def test_read_only_calls_wait_for_nobody() -> None:
    assert waits((FREE, {}), (FREE, {}), (FREE, {})) == [set(), set(), set()]


def test_a_tool_that_says_nothing_about_itself_runs_alone() -> None:
    assert waits((FREE, {}), (FREE, {}), (EXCLUSIVE, {}), (FREE, {}), (EXCLUSIVE, {})) == [
        set(),
        set(),
        {0, 1},
        {0, 1, 2},
        {0, 1, 2, 3},
    ]


def test_readers_of_one_path_run_together_and_a_writer_waits_for_them() -> None:
    assert waits(reads("/a"), reads("/a"), writes("/a"), reads("/a")) == [set(), set(), {0, 1}, {0, 1, 2}]


def test_writers_of_different_paths_run_together() -> None:
    assert waits(writes("/a"), writes("/b"), writes("/ab")) == [set(), set(), set()]


@pytest.mark.parametrize(
    ("first", "second", "overlap"),
    [
        ("/work", "/work/a/b", True),
        ("/work/a/b", "/work", True),
        ("/work/", "/work", True),
        ("/", "/work", True),
        ("/work", "/", True),
        ("/work", "/workshop", False),
        ("/work/a", "/work/b", False),
        ("agent/todos", "agent/todos", True),
        ("agent/todos", "agent", True),
        ("/agent", "agent", False),
    ],
)
def test_a_path_overlaps_what_is_above_and_below_it(first: str, second: str, overlap: bool) -> None:
    assert waits(writes(first), writes(second))[1] == ({0} if overlap else set())
    assert waits(reads(first), writes(second))[1] == ({0} if overlap else set())
    assert waits(writes(first), reads(second))[1] == ({0} if overlap else set())


@pytest.mark.parametrize(
    "broken", [lambda args: 1 / 0, lambda args: None, lambda args: args["missing"], lambda args: Resources(reads=(5,))]
)  # type: ignore[arg-type]
def test_a_tool_that_cannot_say_what_it_touches_runs_alone(broken: Any) -> None:
    odd = entry(read_only=True, resources=broken)
    assert waits((FREE, {}), (odd, {}), (FREE, {})) == [set(), {0}, {0, 1}]


def test_one_call_does_not_wait_for_itself() -> None:
    assert waits((FILES, {"reads": ["/a"], "writes": ["/a", "/a/b"]})) == [set()]


paths = st.lists(st.sampled_from(["a", "b", "c"]), max_size=3).map(lambda parts: "/" + "/".join(parts))
files = st.tuples(st.lists(paths, max_size=2), st.lists(paths, max_size=2)).map(
    lambda both: (FILES, {"reads": both[0], "writes": both[1]})
)
calls = st.lists(st.one_of(files, st.just((FREE, {})), st.just((EXCLUSIVE, {}))), max_size=12)


def overlap(first: str, second: str) -> bool:
    first, second = first.rstrip("/") + "/", second.rstrip("/") + "/"
    return first.startswith(second) or second.startswith(first)


def conflict(first: tuple[ToolEntry, dict[str, Any]], second: tuple[ToolEntry, dict[str, Any]]) -> bool:
    if EXCLUSIVE in (first[0], second[0]):
        return True
    one, two = first[1], second[1]
    pairs = [(w, other) for w in one.get("writes", ()) for other in [*two.get("reads", ()), *two.get("writes", ())]]
    pairs += [(w, other) for w in two.get("writes", ()) for other in [*one.get("reads", ()), *one.get("writes", ())]]
    return any(overlap(a, b) for a, b in pairs)


@given(calls)
def test_it_agrees_with_looking_at_every_pair(sequence: list[tuple[ToolEntry, dict[str, Any]]]) -> None:
    expected: list[set[int]] = []
    for index, this in enumerate(sequence):
        direct = {earlier for earlier in range(index) if conflict(sequence[earlier], this)}
        expected.append(direct.union(*(expected[earlier] for earlier in direct)))
    assert waits(*sequence) == expected


@pytest.mark.parametrize(
    "sequence",
    [
        [writes("/same")] * 4_000,
        [reads("/same"), writes("/same")] * 2_000,
        [writes(f"/deep/{number}") for number in range(4_000)] + [writes("/deep")],
        [(FREE, {}), (EXCLUSIVE, {})] * 2_000,
        [writes("/parent/child"), writes("/parent")] * 2_000,
    ],
    ids=["writes", "reads and writes", "siblings", "barriers", "parent and child"],
)
def test_the_whole_order_has_about_as_many_edges_as_calls(sequence: list[tuple[ToolEntry, dict[str, Any]]]) -> None:
    ordering = Ordering()
    edges = 0
    with costs_less_than(3):
        for index, (tool, arguments) in enumerate(sequence):
            edges += len(ordering.add(index, tool, arguments))
    assert edges <= 5 * len(sequence)


def test_what_a_call_touches_may_depend_on_where_it_runs() -> None:
    def resources(args: dict[str, Any], context: ToolContext | None = None) -> Resources:
        return Resources(writes=(f"{context.task_id if context else 'nowhere'}/{args['path']}",))

    writes = entry(resources=resources)
    ordering = Ordering()
    assert ordering.add(0, writes, {"path": "a"}, ToolContext(task_id="t")) == set()
    assert ordering.add(1, writes, {"path": "a"}, ToolContext(task_id="u")) == set()
    assert ordering.add(2, writes, {"path": "a"}, ToolContext(task_id="t")) == {0}
    assert ordering.add(3, writes, {"path": "a"}) == set()

"""Places are limited, and shared fairly."""

from __future__ import annotations

import random
import threading
from concurrent.futures import Future

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.runtime.batches import FairSlots
from tests.support import PATIENCE_SECONDS, in_threads


def test_free_places_are_given_at_once_and_then_no_more() -> None:
    slots = FairSlots(total=2, per_session=2)
    assert slots.acquire("a") is None
    assert slots.acquire("b") is None
    third = slots.acquire("c")
    assert third is not None
    assert not third.done()
    slots.release("a")
    assert third.done()
    assert slots.in_use == 2


def test_one_session_never_has_more_than_its_share() -> None:
    slots = FairSlots(total=10, per_session=2)
    assert slots.acquire("a") is None
    assert slots.acquire("a") is None
    third = slots.acquire("a")
    assert third is not None
    assert slots.acquire("b") is None
    slots.release("b")
    assert not third.done()
    slots.release("a")
    assert third.done()


def test_a_session_with_a_thousand_waiting_does_not_hold_up_anothers_first() -> None:
    slots = FairSlots(total=1, per_session=1)
    slots.acquire("greedy")
    greedy = [slots.acquire("greedy") for _ in range(1000)]
    modest = slots.acquire("modest")
    assert modest is not None
    slots.release("greedy")
    granted = next(turn for turn in [*greedy, modest] if turn is not None and turn.done())
    slots.release("greedy" if granted is not modest else "modest")
    assert modest.done()


def test_places_are_given_in_turn() -> None:
    slots = FairSlots(total=1, per_session=1)
    slots.acquire("x")
    turns = {session: [slots.acquire(session) for _ in range(3)] for session in "abc"}
    order = []
    holder = "x"
    for _ in range(9):
        slots.release(holder)
        holder = next(s for s in "abc" if sum(bool(t and t.done()) for t in turns[s]) > order.count(s))
        order.append(holder)
    assert order == ["a", "b", "c"] * 3


def test_within_a_session_the_first_to_come_is_the_first_served() -> None:
    slots = FairSlots(total=1, per_session=1)
    slots.acquire("a")
    turns = [slots.acquire("a") for _ in range(5)]
    for index in range(5):
        slots.release("a")
        assert [turn is not None and turn.done() for turn in turns] == [True] * (index + 1) + [False] * (4 - index)


def test_a_wait_that_is_given_up_takes_no_place() -> None:
    slots = FairSlots(total=1, per_session=1)
    slots.acquire("a")
    given_up, waiting = slots.acquire("b"), slots.acquire("c")
    assert given_up is not None
    assert waiting is not None
    assert given_up.cancel()
    slots.release("a")
    assert waiting.done()
    slots.release("c")
    assert slots.in_use == 0
    assert slots.acquire("b") is None


def test_sessions_that_only_gave_up_do_not_stand_in_the_way() -> None:
    slots = FairSlots(total=2, per_session=1)
    slots.acquire("a")
    given_up = slots.acquire("a")
    assert given_up is not None
    given_up.cancel()
    slots.release("a")
    assert slots.acquire("a") is None


@pytest.mark.usefixtures("restless_threads")
def test_threads_never_exceed_the_limits_and_everyone_is_served() -> None:
    slots = FairSlots(total=4, per_session=2)
    lock = threading.Lock()
    inside: dict[str, int] = {}
    most = {"all": 0, "session": 0}

    def work(number: int) -> int:
        session = f"s{number % 3}"
        served = 0
        for _ in range(60):
            turn = slots.acquire(session)
            if turn is not None:
                turn.result(PATIENCE_SECONDS)
            with lock:
                inside[session] = inside.get(session, 0) + 1
                most["all"] = max(most["all"], sum(inside.values()))
                most["session"] = max(most["session"], inside[session])
            with lock:
                inside[session] -= 1
            slots.release(session)
            served += 1
        return served

    assert in_threads(12, work) == [60] * 12
    assert most["all"] <= 4
    assert most["session"] <= 2
    assert slots.in_use == 0


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 2**32), st.integers(1, 120))
def test_whatever_happens_no_place_is_lost_or_given_twice(total: int, share: int, seed: int, steps: int) -> None:
    chance = random.Random(seed)
    slots = FairSlots(total, share)
    holding: list[str] = []
    waiting: list[tuple[str, Future[None]]] = []

    def settle() -> None:
        for session, turn in list(waiting):
            if turn.done():
                waiting.remove((session, turn))
                holding.append(session)

    for _ in range(steps):
        action = chance.random()
        if action < 0.5:
            session = chance.choice("abc")
            turn = slots.acquire(session)
            if turn is None:
                holding.append(session)
            else:
                waiting.append((session, turn))
        elif action < 0.85 and holding:
            slots.release(holding.pop(chance.randrange(len(holding))))
        elif waiting:
            _, turn = waiting.pop(chance.randrange(len(waiting)))
            turn.cancel()
        settle()
        assert slots.in_use == len(holding) <= total
        assert all(holding.count(session) <= share for session in "abc")
        if len(holding) < total:  # a free place is given to whoever may have it
            assert not [session for session, _ in waiting if holding.count(session) < share]
    while holding:
        slots.release(holding.pop())
        settle()
    assert not waiting
    assert slots.in_use == 0

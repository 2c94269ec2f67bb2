"""Events: in order, from any place that is remembered, and nobody waits for a slow one."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator

import pytest

from handrail.serve.event_bus import MISSED, Bus, Event


async def _numbers(following: AsyncIterator[list[Event]], until: int) -> list[int]:
    found: list[int] = []
    async for events in following:
        found += [event.data["n"] for event in events]
        if found[-1] == until:
            return found
    return found


def test_all_watchers_see_all_events_in_order_whoever_tells_them() -> None:
    async def scenario() -> list[list[int]]:
        bus = Bus()
        bus.attach()
        watching = [asyncio.create_task(_numbers(bus.follow(bus.last_id), 1999)) for _ in range(5)]
        taken = iter(range(2000))
        lock = threading.Lock()

        def tell() -> None:
            for _ in range(500):
                with lock:
                    bus.publish("x", n=next(taken))

        await asyncio.gather(*(asyncio.to_thread(tell) for _ in range(4)))
        return await asyncio.gather(*watching)

    assert asyncio.run(scenario()) == [list(range(2000))] * 5


def test_who_comes_back_goes_on_where_they_were() -> None:
    bus = Bus(keep=2000)
    first = bus.publish("x", n=0)
    for number in range(1, 1500):
        bus.publish("x", n=number)
    seen, place = [], first
    while found := bus.after(place):
        seen += [event.data["n"] for event in found]
        place = found[-1].id
    assert seen == list(range(1, 1500))


@pytest.mark.parametrize("slept", [11, 100])
def test_who_slept_for_longer_than_is_remembered_is_told_so_and_goes_on_from_now(slept: int) -> None:
    bus = Bus(keep=10)
    place = bus.publish("x")
    for _ in range(slept):
        bus.publish("x")
    [missed] = bus.after(place)
    assert (missed.kind, missed.id) == (MISSED, bus.last_id)
    assert bus.after(missed.id) == []
    bus.publish("y")
    assert [event.kind for event in bus.after(missed.id)] == ["y"]


@pytest.mark.parametrize("seconds", [-3600, 3600])
def test_a_place_of_an_earlier_server_is_not_taken_for_one_of_this(
    monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    before = Bus()
    place = before.publish("x")
    now = time.time
    monkeypatch.setattr("time.time", lambda: now() + seconds)  # the clock was set in between
    after = Bus()
    after.publish("y")
    assert [event.kind for event in after.after(place)] == [MISSED]


def test_one_who_does_not_read_holds_up_neither_who_tells_nor_who_watches() -> None:
    async def scenario() -> list[int]:
        bus = Bus(keep=1000)
        bus.attach()
        stuck = bus.follow(bus.last_id)
        bus.publish("x", n=-1)
        await anext(stuck)  # and never again
        quick = asyncio.create_task(_numbers(bus.follow(bus.last_id), 299))
        for number in range(300):
            bus.publish("x", n=number)
            await asyncio.sleep(0)
        found = await quick
        for number in range(1000):
            bus.publish("x", n=number)
        [missed] = await anext(stuck)
        assert missed.kind == MISSED
        await stuck.aclose()  # type: ignore[attr-defined]
        return found

    assert asyncio.run(scenario()) == list(range(300))


def test_an_event_is_written_out_once_for_all() -> None:
    event = Event(7, "x", {"text": "ä\ud800"})
    assert event.frame is event.frame
    assert b"id: 7\n" in event.frame


def test_a_loop_that_is_gone_is_told_nothing() -> None:
    bus = Bus()

    async def watch() -> None:
        bus.attach()
        following = asyncio.create_task(anext(bus.follow()))
        await asyncio.sleep(0)
        following.cancel()
        await asyncio.wait({following})

    asyncio.run(watch())
    bus.publish("x")
    assert [event.kind for event in bus.after(bus.last_id - 1)] == ["x"]

"""Work that is done on another thread's loop."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Iterator

import pytest

from handrail.mcp_client.hops import Hop, Mailbox

from ..support import in_threads

word: contextvars.ContextVar[str] = contextvars.ContextVar("word", default="")


@pytest.fixture
def box() -> Iterator[Mailbox]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield Mailbox(loop)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


async def double(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


async def fail() -> None:
    raise LookupError("no such thing")


def test_many_threads_get_their_own_answers(box: Mailbox) -> None:
    def work(number: int) -> list[int]:
        return [Hop(double(number * 100 + each), box).wait() for each in range(100)]

    assert in_threads(8, work) == [[2 * (number * 100 + each) for each in range(100)] for number in range(8)]


def test_a_loop_gets_many_answers_at_once(box: Mailbox) -> None:
    async def all_of_them() -> list[int]:
        return await asyncio.gather(*(Hop(double(number), box).awaited() for number in range(500)))

    assert asyncio.run(all_of_them()) == [2 * number for number in range(500)]


def test_an_error_is_raised_where_it_is_waited_for(box: Mailbox) -> None:
    with pytest.raises(LookupError, match="no such thing"):
        Hop(fail(), box).wait()
    with pytest.raises(LookupError, match="no such thing"):
        asyncio.run(Hop(fail(), box).awaited())


def test_context_variables_travel_along(box: Mailbox) -> None:
    async def said() -> str:
        return word.get()

    word.set("here")
    assert Hop(said(), box).wait() == "here"


def test_whoever_waits_no_more_ends_the_work(box: Mailbox) -> None:
    began, ended = threading.Event(), threading.Event()

    async def work() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def give_up() -> None:
        waiting = asyncio.ensure_future(Hop(work(), box).awaited())
        await asyncio.to_thread(began.wait)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)

    asyncio.run(give_up())
    assert ended.wait(60)


def test_work_that_is_cancelled_before_it_begins_does_not_run(box: Mailbox) -> None:
    ran: list[int] = []

    async def work() -> None:
        await asyncio.sleep(0)
        ran.append(1)

    hop = Hop(work(), box)
    hop.cancel()
    with pytest.raises(asyncio.CancelledError):
        hop.wait()
    assert not ran

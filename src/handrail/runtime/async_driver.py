"""Drive a call's flow in the running loop; waiting holds no thread."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar, cast

from ..base.loops import bounded, result_of
from ..base.workers import is_being_cancelled, pool, run_async
from ..errors import CallCancelled, CallTimeout, ToolFailed
from .steps import TURN, Flow, Foreign, Step, foreign, guarded

T = TypeVar("T")


Perform = Callable[[Step], Awaitable[Any]]


async def aperform(step: Step) -> Any:
    """Wait for one step in the running loop."""
    is_here = step.in_caller and not step.may_block and not step.apart
    value = guarded(step.function, contained=True) if is_here else await _on_worker(step)
    if not hasattr(value, "__await__"):
        return value
    if step.timeout is None and step.cancel is None:
        return await aguarded(value, contained=True)
    return await bounded(aguarded(value, contained=True), timeout=step.timeout, cancel=step.cancel)


def adrive(flow: Flow[T], perform: Perform = aperform) -> Awaitable[T]:
    """Run a flow in the running loop, from its start or from where `adrive_to_turn` left it."""
    return cast("Awaitable[T]", _adrive(flow, perform, stop_at=None))


async def adrive_to_turn(flow: Flow[T], perform: Perform = aperform) -> T | None:
    """Run a flow until it waits for its turn. Returns None then, and the flow's value if it ends before."""
    return await _adrive(flow, perform, stop_at=TURN)


class _Pace:
    """Lets calls begin for a few milliseconds per turn of the loop: many at once would hold up everything else in it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._until, self._waiting = 0.0, deque[asyncio.Future[None]]()

    def turn(self) -> asyncio.Future[None] | None:
        """What to await before a call begins; None if it may begin at once."""
        if not self._until:
            self._until = self._loop.time() + _BEGIN_SECONDS
            self._loop.call_soon(self._next)
        elif self._waiting or self._loop.time() > self._until:
            self._waiting.append(self._loop.create_future())
            return self._waiting[-1]
        return None

    def _next(self) -> None:
        """One of those that wait goes on per turn of the loop."""
        self._until = 0.0
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self._until = self._loop.time() + _BEGIN_SECONDS
                self._loop.call_soon(self._next)
                return


class _Young:
    """Lets few calls at a time begin on a worker: threads that compete for the interpreter slow each other down, and the loop
    with them. What has run for a moment waits for something, and counts no longer."""

    def __init__(self) -> None:
        self._count, self._waiting = 0, deque[asyncio.Future[None]]()

    async def enter(self) -> Callable[[], None]:
        """Returns what to call when it is over."""
        loop = asyncio.get_running_loop()
        if self._count < _YOUNG_AT_ONCE:
            self._count += 1
        else:
            turn: asyncio.Future[None] = loop.create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if not turn.cancelled():
                    self._next()
                raise
        place = iter((self._next,))  # given up once

        def leave() -> None:
            next(place, _nothing)()

        loop.call_later(_YOUNG_SECONDS, leave)
        return leave

    def _next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._count -= 1


def _nothing() -> None:
    """What is left to do when a place was given up before."""


_YOUNG_AT_ONCE, _YOUNG_SECONDS = 8, 0.002
_BEGIN_SECONDS = 0.003


class _OfLoop(threading.local):
    """Those of the loop that ran last in a thread."""

    loop: asyncio.AbstractEventLoop | None = None
    pace: _Pace
    young: _Young


_of_loop = _OfLoop()


def _paced() -> _OfLoop:
    loop = asyncio.get_running_loop()
    if _of_loop.loop is not loop:
        _of_loop.loop, _of_loop.pace, _of_loop.young = loop, _Pace(), _Young()
    return _of_loop


async def _adrive(flow: Flow[T], perform: Perform, *, stop_at: Step | None) -> T | None:
    if (turn := _paced().pace.turn()) is not None:
        await turn
    try:
        step = flow.send(None)
        while step is not stop_at:
            try:
                value = await (perform(step) if isinstance(step, Step) else aguarded(step, contained=False))
            except BaseException as error:  # noqa: BLE001  the flow decides what becomes of it
                step = flow.throw(error)
            else:
                step = flow.send(value)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    return None


async def _on_worker(step: Step) -> Any:
    leave = await _paced().young.enter()
    function = partial(_complete, step) if step.apart else step.function
    future = pool.submit(partial(guarded, function, contained=True))
    try:
        return await result_of(future, timeout=step.timeout, cancel=step.cancel)
    except (CallCancelled, CallTimeout):
        if step.cancel is None or not step.cancel.cancelled or not step.grace:
            raise
        ending = asyncio.wrap_future(future)
        ending.add_done_callback(
            lambda done: done.cancelled() or done.exception()
        )  # asyncio reports what nobody retrieves
        await asyncio.wait([ending], timeout=step.grace)
        if not future.done() or future.cancelled():
            raise
        return future.result()
    finally:
        leave()


def _complete(step: Step) -> Any:
    value = step.function()
    if not hasattr(value, "__await__"):
        return value
    return run_async(aguarded(value, contained=True), timeout=step.timeout, cancel=step.cancel)


async def aguarded(awaitable: Any, *, contained: bool) -> Any:
    try:
        return await awaitable
    except asyncio.CancelledError as error:
        if is_being_cancelled():
            raise
        raise Foreign(error) from None
    except GeneratorExit:
        if asyncio._get_running_loop() is None:  # nobody raised it: the coroutine is being closed
            raise
        raise Foreign(ToolFailed("the handler raised GeneratorExit")) from None
    except BaseException as error:  # noqa: BLE001  what others' code raises must not pass for something of ours
        raise foreign(error, contained=contained) from None

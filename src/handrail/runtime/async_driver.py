"""Drive a call's flow in the running loop; waiting holds no thread."""

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from functools import partial
from time import monotonic
from typing import Any, TypeVar

from ..base.loops import bounded, result_of
from ..base.workers import pool, run_async
from ..errors import CallCancelled, CallTimeout
from .steps import Flow, Step, aguarded, cause, foreign_await, guarded

T = TypeVar("T")


Perform = Callable[[Step], Awaitable[Any]]


async def aperform(step: Step) -> Any:
    """Wait for one step in the running loop."""
    if step.in_loop is not None and (begun := guarded(step.in_loop, contained=True)) is not None:
        return await aguarded(begun, contained=True)
    is_here = step.in_caller and not step.may_block and not step.apart
    value = guarded(step.function, contained=True) if is_here else await _on_worker(step)
    if not hasattr(value, "__await__"):
        return value
    if step.timeout is None and step.cancel is None:
        return await aguarded(value, contained=True)
    return await bounded(aguarded(value, contained=True), timeout=step.timeout, cancel=step.cancel)


class _Pace:
    """Lets calls begin for a few milliseconds per turn of the loop: many at once would hold up everything else in it."""

    def __init__(self) -> None:
        self._until, self._waiting = 0.0, deque[asyncio.Future[None]]()

    def turn(self) -> asyncio.Future[None] | None:
        """What to await before a call begins; None if it may begin at once."""
        if not self._until:
            self._until = monotonic() + _BEGIN_SECONDS
            asyncio.get_running_loop().call_soon(self._next)
        elif self._waiting or monotonic() > self._until:
            self._waiting.append(asyncio.get_running_loop().create_future())
            return self._waiting[-1]
        return None

    def _next(self) -> None:
        """One of those that wait goes on per turn of the loop."""
        self._until = 0.0
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self._until = monotonic() + _BEGIN_SECONDS
                asyncio.get_running_loop().call_soon(self._next)
                return


async def _enter(young: asyncio.Semaphore) -> Callable[[], None]:
    """Lets few calls at a time begin on a worker: threads that compete for the interpreter slow each other down, and the loop
    with them. What has run for a moment waits for something, and counts no longer. Returns what to call when it is over."""
    await young.acquire()
    places = [young]

    def leave() -> None:
        while places:
            places.pop().release()

    asyncio.get_running_loop().call_later(_YOUNG_SECONDS, leave)
    return leave


_YOUNG_AT_ONCE, _YOUNG_SECONDS, _BEGIN_SECONDS = 8, 0.002, 0.002

_Limits = tuple[_Pace, asyncio.Semaphore]
_limits: dict[asyncio.AbstractEventLoop, _Limits] = {}
_within_a_call: ContextVar[bool] = ContextVar("handrail_within_a_call", default=False)


def _limits_of_loop() -> _Limits:
    loop = asyncio.get_running_loop()
    limits = _limits.get(loop)
    if limits is None:
        for closed in [other for other in list(_limits) if other.is_closed()]:  # a semaphore knows its loop
            _limits.pop(closed, None)
        limits = _limits[loop] = (_Pace(), asyncio.Semaphore(_YOUNG_AT_ONCE))
        _contain_tasks(loop)
    return limits


def turn_to_begin() -> asyncio.Future[None] | None:
    """What to await before a call begins in the running loop; None if it may begin at once."""
    return _limits_of_loop()[0].turn()


async def adrive(
    flow: Flow[T], perform: Perform = aperform, *, stop_at: Step | None = None, has_turn: bool = False
) -> T:
    """Run a flow in the running loop, from its start or from where it was left: at `stop_at`, where this returns None."""
    if not has_turn and (turn := turn_to_begin()) is not None:
        await turn
    is_within = _within_a_call.get()
    _within_a_call.set(True)
    try:
        step = flow.send(None)
        while step is not stop_at:
            try:
                value = await (perform(step) if isinstance(step, Step) else step)
            except BaseException as error:  # noqa: BLE001  the flow decides what becomes of it
                step = flow.throw(error if isinstance(step, Step) else foreign_await(error, contained=True))
            else:
                step = flow.send(value)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        _within_a_call.set(is_within)
    return None  # type: ignore[return-value]  # it waits at `stop_at`


def _contain_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Let no task that a handler starts end the loop with a SystemExit or KeyboardInterrupt of its own, or whoever waits for
    it: a GeneratorExit that is thrown into a coroutine closes all that it awaits."""
    make: Any = loop.get_task_factory() or (lambda loop, work, **more: asyncio.Task(work, loop=loop, **more))

    def factory(loop: asyncio.AbstractEventLoop, work: Any, **more: Any) -> Any:
        return make(loop, _contained(work) if _within_a_call.get() and inspect.iscoroutine(work) else work, **more)

    loop.set_task_factory(factory)


async def _contained(work: Coroutine[Any, Any, T]) -> T:
    try:
        return await work
    except (SystemExit, KeyboardInterrupt, GeneratorExit) as error:
        raise cause(foreign_await(error, contained=True)) from None


async def _on_worker(step: Step) -> Any:
    leave = await _enter(_limits_of_loop()[1])
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

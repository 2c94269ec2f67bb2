"""Where the coroutines run that sync code waits for, and how an await is bounded.

- A thread with no loop running, the main one or a worker: on that thread's own loop, which is kept between calls so
  that cached async clients stay alive, and closed when the thread ends.
- Inside a running loop: on another thread with its own loop, for this call only, bounded by a deadline.
"""

import asyncio
import contextlib
import threading
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar, cast

from ..errors import CallCancelled, CallTimeout
from ..types import CancelToken
from .workers import MAX_SECONDS, Lane, WorkerPool, database_lane, pool, run_bounded

T = TypeVar("T")

NESTED_DEADLINE_SECONDS = 300.0
CLEAN_UP_SECONDS = 0.3
_MAX_ARRIVALS = 2


def run(awaitable: Awaitable[T], *, timeout: float | None = None, cancel: CancelToken | None = None) -> T:
    """See `workers.run_async`."""
    if asyncio._get_running_loop() is not None:
        limit = NESTED_DEADLINE_SECONDS if timeout is None else timeout
        # The coroutine's own deadline comes first; the margin is for one that swallows its cancellation.
        work = bounded(awaitable, timeout=limit, cancel=cancel)
        return cast("T", run_bounded(_run_alone, work, timeout=limit * 1.1 + 1))
    if timeout is not None or cancel is not None:
        awaitable = bounded(awaitable, timeout=timeout, cancel=cancel)
    return _run_here(awaitable)


async def bounded(
    awaitable: Awaitable[T],
    *,
    timeout: float | None,  # noqa: ASYNC109  the limit of a foreign awaitable
    cancel: CancelToken | None = None,
    clean_up: float = CLEAN_UP_SECONDS,
    ends_by_itself: Callable[[], bool] = lambda: False,
) -> T:
    """Await with a limit and a token, turning either into a typed error. Work that swallows its cancellation is abandoned.
    Work that `ends_by_itself` when the token is cancelled has as long for that as for its clean-up."""
    task = asyncio.ensure_future(awaitable)
    with _limits(timeout, cancel) as (over, _):
        task.add_done_callback(partial(finish, over))
        try:
            await over
            if not task.done() and ends_by_itself():
                await asyncio.wait({task}, timeout=clean_up)
            if task.cancelled() and cancel is not None and cancel.cancelled:
                raise cancel.error()
            if task.done():
                return task.result()
            await _end(task, clean_up)
        except asyncio.CancelledError:
            await _end(task, clean_up)
            raise
    raise _stopped(timeout, cancel)


async def result_of(
    job: Future[T],
    *,
    timeout: float | None,  # noqa: ASYNC109  the limit of another thread's work
    cancel: CancelToken | None,
) -> T:
    """`bounded` for what runs in another thread, which is abandoned."""
    with _limits(timeout, cancel) as (over, wake):
        job.add_done_callback(wake)
        try:
            await over
        except asyncio.CancelledError:
            job.cancel()
            raise
    if job.done():
        return job.result()
    job.cancel()
    raise _stopped(timeout, cancel)


@contextlib.contextmanager
def _limits(
    timeout: float | None, cancel: CancelToken | None
) -> Iterator[tuple[asyncio.Future[None], Callable[[object], None]]]:
    """A future that is done when the time is over or the token is cancelled, and a function that finishes it from any thread.
    One future for all outcomes costs half of what asyncio.wait does."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    arrivals = _arrivals.get(loop) or _arrivals.setdefault(loop, _Arrivals(loop))

    def wake(_: object = None) -> None:
        arrivals.add(over)

    forget = cancel.on_cancel(wake) if cancel is not None else None
    timer = loop.call_later(min(timeout, MAX_SECONDS), finish, over) if timeout is not None else None
    try:
        yield over, wake
    finally:
        if timer is not None:
            timer.cancel()
        if forget is not None:
            forget()


class _Arrivals:
    """What other threads have finished for a loop. One wake-up is for all that has come since the last: each costs a write to
    a pipe, and makes the threads compete for the interpreter."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = weakref.ref(loop)
        self._done: deque[asyncio.Future[None]] = deque()
        self._is_due = False

    def add(self, future: asyncio.Future[None]) -> None:
        self._done.append(future)
        loop = self._loop()
        if not self._is_due and loop is not None and not loop.is_closed():
            self._is_due = True
            loop.call_soon_threadsafe(self._finish)

    def _finish(self) -> None:
        """Some per turn of the loop: what waits for them all goes on at once, and would hold up everything else."""
        self._is_due = False  # first: what is added from now on is seen below, or wakes the loop again
        for _ in range(min(len(self._done), _MAX_ARRIVALS)):
            finish(self._done.popleft())
        loop = self._loop()
        if self._done and loop is not None:
            self._is_due = True
            loop.call_soon(self._finish)


_arrivals: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Arrivals] = weakref.WeakKeyDictionary()


def _stopped(timeout: float | None, cancel: CancelToken | None) -> CallCancelled | CallTimeout:
    if cancel is not None and cancel.cancelled:
        return cancel.error()
    return CallTimeout(f"did not end within {timeout:g} s")


async def on_worker(function: Callable[..., T], *args: Any, on: WorkerPool | Lane = pool) -> T:
    """Run blocking work without holding up the loop. Work that has begun goes on when the caller is cancelled."""
    return await result_of(on.submit(function, *args), timeout=None, cancel=None)


def on_database(function: Callable[..., T], *args: Any) -> Awaitable[T]:
    """`on_worker` for what waits for a database."""
    return on_worker(function, *args, on=database_lane)


def finish(future: asyncio.Future[None], *_: object) -> None:
    if not future.done():
        future.set_result(None)


async def _end(task: asyncio.Future[Any], seconds: float) -> None:
    """Cancel, and give its clean-up a moment."""
    task.cancel()
    task.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody will retrieve it
    await asyncio.wait({task}, timeout=seconds)


class _LoopHolder:
    """Owns one thread's loop; it dies with the thread, and the loop is closed then."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        weakref.finalize(self, _close, self.loop)


_thread = threading.local()


def _loop_of_this_thread() -> asyncio.AbstractEventLoop:
    # Only the thread may reference the holder: a stored exception keeps the frames it passed.
    holder: _LoopHolder | None = getattr(_thread, "holder", None)
    if holder is None or holder.loop.is_closed():
        holder = _thread.holder = _LoopHolder()
    return holder.loop


def _run_here(awaitable: Awaitable[T]) -> T:
    loop = _loop_of_this_thread()
    task = asyncio.ensure_future(awaitable, loop=loop)
    try:
        return loop.run_until_complete(task)
    except asyncio.CancelledError:
        raise CallCancelled("it was cancelled from within") from None
    except BaseException:
        if not task.done():  # Ctrl-C: let the coroutine clean up first
            task.cancel()
            loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
        raise


def _run_alone(work: Coroutine[Any, Any, T]) -> T:
    try:
        return asyncio.run(work)
    except asyncio.CancelledError:
        raise CallCancelled("it was cancelled from within") from None


def _close(loop: asyncio.AbstractEventLoop) -> None:
    if loop.is_closed() or loop.is_running():
        return
    if asyncio._get_running_loop() is not None:  # released inside another loop, where it cannot be finished
        pool.submit(_close, loop)
        return
    pending: set[asyncio.Task[Any]] = asyncio.all_tasks(loop)
    for task in pending:
        task.cancel()
    if pending:
        loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()

"""Run a coroutine from sync code, wherever that code happens to run.

- A thread with no loop running, the main one or a worker: on that thread's own loop, which is kept between calls so
  that cached async clients stay alive, and closed when the thread ends.
- Inside a running loop: on another thread with a loop of its own, for this call only, bounded by a deadline.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Awaitable
from typing import Any, TypeVar, cast

from .errors import CallCancelled, CallTimeout
from .types import CancelToken
from .workers import run_bounded

T = TypeVar("T")

NESTED_DEADLINE_SECONDS = 300.0


def run_async(awaitable: Awaitable[T], *, timeout: float | None = None, cancel: CancelToken | None = None) -> T:
    """Run to the end and give back the result. Past `timeout` seconds, or when cancelled, the coroutine is cancelled
    and CallTimeout or CallCancelled is raised."""
    if asyncio._get_running_loop() is not None:
        limit = NESTED_DEADLINE_SECONDS if timeout is None else timeout
        # The coroutine's own deadline comes first; the margin is for one that swallows its cancellation.
        work = bounded(awaitable, timeout=limit, cancel=cancel)
        return cast("T", run_bounded(_run_alone, work, timeout=limit * 1.1 + 1))
    if timeout is not None or cancel is not None:
        awaitable = bounded(awaitable, timeout=timeout, cancel=cancel)
    return _run_here(awaitable)


async def bounded(awaitable: Awaitable[T], *, timeout: float | None, cancel: CancelToken | None = None) -> T:  # noqa: ASYNC109
    """Await with a limit and a token, turning either into a typed error."""
    task = asyncio.ensure_future(awaitable)
    loop = asyncio.get_running_loop()
    forget = cancel.on_cancel(lambda: loop.call_soon_threadsafe(task.cancel)) if cancel is not None else None
    limit = asyncio.timeout(timeout)
    try:
        async with limit:
            return await task
    except TimeoutError:
        if limit.expired():
            raise CallTimeout(f"did not end within {timeout:g} s") from None
        raise
    except asyncio.CancelledError:
        if cancel is not None and cancel.cancelled:
            raise cancel.error() from None
        task.cancel()
        raise
    finally:
        if forget is not None:
            forget()


class _LoopHolder:
    """Owns one thread's loop; it dies with the thread, and the loop is closed then."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        weakref.finalize(self, _close, self.loop)


_thread = threading.local()


def _run_here(awaitable: Awaitable[T]) -> T:
    holder = getattr(_thread, "holder", None)
    if holder is None or holder.loop.is_closed():
        holder = _thread.holder = _LoopHolder()
    loop: asyncio.AbstractEventLoop = holder.loop
    task = asyncio.ensure_future(awaitable, loop=loop)
    try:
        return loop.run_until_complete(task)
    except asyncio.CancelledError:
        raise CallCancelled("it was cancelled from within") from None
    except BaseException:
        if not task.done():  # Ctrl-C: the coroutine gets to clean up before it is gone
            task.cancel()
            loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
        raise


def _run_alone(awaitable: Awaitable[T]) -> T:
    try:
        with asyncio.Runner() as runner:
            return runner.run(_as_coroutine(awaitable))
    except asyncio.CancelledError:
        raise CallCancelled("it was cancelled from within") from None


async def _as_coroutine(awaitable: Awaitable[T]) -> T:
    return await awaitable


def _close(loop: asyncio.AbstractEventLoop) -> None:
    if loop.is_closed() or loop.is_running():
        return
    pending: set[asyncio.Task[Any]] = asyncio.all_tasks(loop)
    for task in pending:
        task.cancel()
    if pending:
        loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()

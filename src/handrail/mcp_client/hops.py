"""Have work done on another thread's loop and wait for it here, with as few wake-ups as can be: those cost the most."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import weakref
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_CROWD = 16
_CROWD_SECONDS = 0.001


class Mailbox:
    """Hands functions to a loop. It is woken once for as many as come before it gets to them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = weakref.ref(loop)
        self._posted: deque[Callable[[], object]] = deque()
        self._is_awake = False
        self.waiting = 0  # hops that are awaited on this loop

    def post(self, function: Callable[[], object]) -> None:
        """Raises RuntimeError when the loop is closed."""
        self._posted.append(function)
        if not self._is_awake:
            self._is_awake = True
            loop = self._loop()
            if loop is not None:
                loop.call_soon_threadsafe(self._take)

    def post_soon(self, function: Callable[[], object]) -> None:
        """The same from a running loop that may have more to post: the other is woken when this turn is over, and where
        many wait there, not for every single one."""
        self._posted.append(function)
        if not self._is_awake:
            self._is_awake = True
            loop = asyncio.get_running_loop()
            if self.waiting < _CROWD:
                loop.call_soon(self._wake)
            else:
                loop.call_later(_CROWD_SECONDS, self._wake)

    def _wake(self) -> None:
        loop = self._loop()
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._take)

    def _take(self) -> None:
        self._is_awake = False  # first: what is posted from now on wakes it again
        while self._posted:
            self._posted.popleft()()


_mailboxes: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Mailbox] = weakref.WeakKeyDictionary()


def mailbox_of(loop: asyncio.AbstractEventLoop) -> Mailbox:
    box = _mailboxes.get(loop)
    if box is None:
        box = _mailboxes.setdefault(loop, Mailbox(loop))
    return box


class Hop(Generic[T]):
    """One piece of work on another loop. `cancel` may be called from any thread."""

    __slots__ = ("_box", "_context", "_is_cancelled", "_outcome", "_ready", "_task", "_work")

    def __init__(self, work: Coroutine[Any, Any, T], box: Mailbox) -> None:
        self._work, self._box = work, box
        self._context = contextvars.copy_context()
        self._task: asyncio.Task[T] | None = None
        self._is_cancelled = False
        self._outcome: tuple[T | None, BaseException | None] = (None, None)
        self._ready: Callable[[], object]

    def wait(self) -> T:
        """Until it is done, from a thread that runs no loop."""
        done = threading.Lock()
        done.acquire()
        self._begin(done.release)
        try:
            done.acquire()
        except BaseException:  # Ctrl-C: whoever works is told too
            self.cancel()
            raise
        return self._result()

    async def awaited(self) -> T:
        """Until it is done, from another loop."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        back = mailbox_of(loop)
        self._begin(lambda: back.post_soon(lambda: None if done.done() else done.set_result(None)))
        back.waiting += 1
        try:
            await done
        except asyncio.CancelledError:
            self.cancel()
            raise
        finally:
            back.waiting -= 1
        return self._result()

    def cancel(self) -> None:
        self._is_cancelled = True
        self._box.post(self._stop)

    def _begin(self, ready: Callable[[], object]) -> None:
        self._ready = ready
        try:
            self._box.post(self._start)
        except BaseException:
            self._work.close()
            raise

    def _start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._work, context=self._context)
        self._task.add_done_callback(self._finished)
        if self._is_cancelled:
            self._task.cancel()

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _finished(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self._outcome = (None, asyncio.CancelledError())
        else:
            error = task.exception()
            self._outcome = (None, error) if error is not None else (task.result(), None)
        self._ready()

    def _result(self) -> T:
        value, error = self._outcome
        if error is not None:
            self._outcome = (None, None)  # no cycle through the error's frames
            raise error
        return value  # type: ignore[return-value]

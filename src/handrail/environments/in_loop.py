"""Run commands in an event loop without a thread: a short one in a shell of this machine is begun and ended there.

What takes longer, prints much, or has to be waited for otherwise is left to a worker.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from ..base.loops import on_worker

if TYPE_CHECKING:
    from ..types import CancelToken
    from .base import CommandResult
    from .live_environment import LiveEnvironment
    from .transport.link import BegunCommand

_SHORT_SECONDS = 0.005
# More would only wait for each other, and all that end at once would hold up the loop.
_SHORT_AT_ONCE = 8
_turns: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] = {}


async def execute(
    environment: LiveEnvironment, command: str, *, cancel: CancelToken, separate: bool = False, **options: Any
) -> CommandResult:
    """`environment.execute` for async callers. One that is cancelled waits until its command has ended."""
    async with _turns_of(asyncio.get_running_loop()):
        begun = None if separate else environment.begin(command, cancel=cancel, **options)
        if begun is not None and (ended := await _ended_soon(environment, begun, cancel)) is not None:
            return ended
    if begun is not None:
        return await _finished(environment, begun, cancel)
    options |= {"cancel": cancel, "separate": True} if separate else {"cancel": cancel}
    return await on_worker(lambda: environment.execute(command, **options))


def _turns_of(loop: asyncio.AbstractEventLoop) -> asyncio.Semaphore:
    found = _turns.get(loop)
    if found is None:
        for closed in [other for other in list(_turns) if other.is_closed()]:
            _turns.pop(closed, None)
        found = _turns.setdefault(loop, asyncio.Semaphore(_SHORT_AT_ONCE))
    return found


async def _ended_soon(environment: LiveEnvironment, begun: BegunCommand, cancel: CancelToken) -> CommandResult | None:
    """The result of a command that ends soon; None if it does not."""
    loop, done = asyncio.get_running_loop(), begun.link.shell.connection.done
    ready: asyncio.Future[None] = loop.create_future()
    try:
        loop.add_reader(done, _wake, ready)
    except (NotImplementedError, ValueError, OSError):  # not every loop can; or the shell has just ended
        return None
    forget = cancel.on_cancel(begun.kill)
    timer = loop.call_later(_SHORT_SECONDS, _wake, ready)
    cancelled: asyncio.CancelledError | None = None
    try:
        await ready
    except asyncio.CancelledError as error:
        cancelled = error
    finally:
        timer.cancel()
        loop.remove_reader(done)
        forget()
    if cancelled is not None:
        begun.kill()
        await _finished(environment, begun, cancel)
        raise cancelled
    return environment.end_begun(begun, waits=False)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def _finished(environment: LiveEnvironment, begun: BegunCommand, cancel: CancelToken) -> CommandResult:
    forget = cancel.on_cancel(begun.kill)
    ending = asyncio.ensure_future(on_worker(lambda: environment.end_begun(begun, waits=True)))
    try:
        await asyncio.shield(ending)
    except asyncio.CancelledError:
        begun.kill()
        with contextlib.suppress(Exception):  # what becomes of the command does not matter any longer
            await asyncio.wait([ending])
        raise
    finally:
        forget()
    result = ending.result()
    assert result is not None  # it was waited for
    return result

"""Run commands in an event loop without a thread, as long as they take a moment.

One descriptor in the loop stands for all of them. What takes longer, or has to be waited for otherwise, is left to a worker.
"""

from __future__ import annotations

import asyncio
import select
import time
from typing import TYPE_CHECKING, Any

from ..base.loops import on_worker

if TYPE_CHECKING:
    from ..types import CancelToken
    from .base import CommandResult
    from .live_environment import LiveEnvironment
    from .transport.link import BegunCommand

# More would only wait for each other, and many that end at once would hold up the loop.
_AT_ONCE, _ENDED_AT_ONCE = 8, 2
# Its output is not read so long: a full pipe stops the command.
_LATE_SECONDS = 0.01


async def execute(environment: LiveEnvironment, command: str, *, cancel: CancelToken, **options: Any) -> CommandResult:
    """`environment.execute` for async callers. One that is cancelled waits until its command has ended."""
    loop, begun = asyncio.get_running_loop(), None
    commands = _commands.get(loop)
    if commands is None:
        for closed in [other for other in list(_commands) if other.is_closed()]:  # a semaphore knows its loop
            _commands.pop(closed, None)
        commands = _commands.setdefault(loop, _Commands())
    await commands.turns.acquire()
    try:
        begun = environment.begin(command, cancel=cancel, **options)
    finally:
        if begun is None:
            commands.turns.release()
    if begun is not None:
        return await _result(environment, commands, begun, cancel)
    return await on_worker(lambda: environment.execute(command, cancel=cancel, **options))


class _Commands:
    """The commands of one loop: who may begin, and who has ended. What watches them is open while there are some."""

    def __init__(self) -> None:
        self.turns = asyncio.Semaphore(_AT_ONCE)
        self._ready: select.epoll | None = None
        self._waiting: dict[
            int, tuple[BegunCommand, asyncio.Future[bool]]
        ] = {}  # by the channel on which it reports its end
        self._is_timed = False

    def watch(self, begun: BegunCommand) -> asyncio.Future[bool]:
        """Done when its command has ended, or for no reason; True if it is late, and not waited for in the loop any longer."""
        loop = asyncio.get_running_loop()
        woken = loop.create_future()
        try:
            if self._ready is None:
                ready = select.epoll()
                loop.add_reader(ready.fileno(), self._on_ready)
                self._ready = ready
            if not self._is_timed:
                self._is_timed = True
                loop.call_later(_LATE_SECONDS, self._on_time)
            fd, events = begun.link.shell.connection.done, select.EPOLLIN | select.EPOLLONESHOT
            try:  # a descriptor that was closed is registered no longer, whoever has its number now
                self._ready.modify(fd, events)
            except FileNotFoundError:
                self._ready.register(fd, events)
            self._waiting[fd] = begun, woken
        # No shell any longer, no descriptor free, or not in this loop.
        except (OSError, ValueError, NotImplementedError):
            woken.set_result(True)
        return woken

    def leave(self) -> None:
        self.turns.release()
        for fd in [fd for fd, (_, woken) in self._waiting.items() if woken.done()]:  # whoever waited was cancelled
            del self._waiting[fd]
        if not self._waiting:  # most likely another one begins at once
            asyncio.get_running_loop().call_soon(self._close_if_idle)

    def _close_if_idle(self) -> None:
        if self._waiting or self._ready is None:
            return
        asyncio.get_running_loop().remove_reader(self._ready.fileno())
        self._ready.close()
        self._ready = None

    def _wake(self, fd: int, *, is_late: bool) -> None:
        _, woken = self._waiting.pop(fd)
        if not woken.done():
            woken.set_result(is_late)

    def _on_ready(self) -> None:
        assert self._ready is not None
        for fd, _ in self._ready.poll(0, _ENDED_AT_ONCE):
            if fd in self._waiting:
                self._wake(fd, is_late=False)

    def _on_time(self) -> None:
        """Some may be late. Called again when the next may be."""
        latest = time.monotonic() - _LATE_SECONDS
        for fd in [fd for fd, (begun, _) in self._waiting.items() if begun.run.began < latest]:
            self._wake(fd, is_late=True)
        self._is_timed, loop = bool(self._waiting), asyncio.get_running_loop()
        if self._is_timed:
            loop.call_later(min(begun.run.began for begun, _ in self._waiting.values()) - latest, self._on_time)
        else:
            self._close_if_idle()


_commands: dict[asyncio.AbstractEventLoop, _Commands] = {}


async def _result(
    environment: LiveEnvironment, commands: _Commands, begun: BegunCommand, cancel: CancelToken
) -> CommandResult:
    forget, ending = cancel.on_cancel(begun.kill), None
    try:
        ended = await _ended_soon(environment, commands, begun)
        if ended is None:
            ending = asyncio.ensure_future(on_worker(lambda: environment.end_begun(begun, waits=True)))
            ended = await asyncio.shield(ending)
            assert ended is not None  # it was waited for
        return ended
    except asyncio.CancelledError:
        begun.kill()
        ending = ending or asyncio.ensure_future(on_worker(lambda: environment.end_begun(begun, waits=True)))
        await asyncio.wait([ending])
        raise
    finally:
        forget()


async def _ended_soon(environment: LiveEnvironment, commands: _Commands, begun: BegunCommand) -> CommandResult | None:
    """The result of a command that ends soon; None if it has to be waited for otherwise."""
    try:
        while True:
            is_late = await commands.watch(begun)
            ended = environment.end_begun(begun, waits=False)
            if ended is not None or is_late or begun.run.is_over:
                return ended
    finally:
        commands.leave()

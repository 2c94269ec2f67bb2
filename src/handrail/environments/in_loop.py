"""Run commands in an event loop without a thread, as long as they take a moment and print little.

One descriptor in the loop stands for all of them. What takes longer, or has to be waited for otherwise, is left to a worker.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import select
import struct
import termios
import time
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

from ..base.loops import on_worker

if TYPE_CHECKING:
    from ..types import CancelToken
    from .base import CommandResult
    from .live_environment import LiveEnvironment
    from .transport.link import BegunCommand

# More would only wait for each other. What has run for a moment waits for something else, and counts no longer.
_YOUNG_AT_ONCE, _YOUNG_SECONDS = 8, 0.01
_LATE_SECONDS, _LOOK_SECONDS = 0.2, 0.005
_MAX_UNREAD_BYTES = 1 << 15  # a full pipe would stop the command
# All that end at once would hold up the loop.
_ENDED_AT_ONCE = 4


async def execute(
    environment: LiveEnvironment, command: str, *, cancel: CancelToken, separate: bool = False, **options: Any
) -> CommandResult:
    """`environment.execute` for async callers. One that is cancelled waits until its command has ended."""
    commands = _commands_of(asyncio.get_running_loop())
    await commands.turn()
    waiting = None
    try:
        begun = None if separate else environment.begin(command, cancel=cancel, **options)
        waiting = _Waiting(begun) if begun is not None else None
    finally:
        if waiting is None:
            commands.leave()
    if waiting is None:
        options |= {"cancel": cancel, "separate": True} if separate else {"cancel": cancel}
        return await on_worker(lambda: environment.execute(command, **options))
    return await _ended(environment, commands, waiting, cancel) or await _finished(environment, waiting.begun, cancel)


class _Waiting:
    """A command that runs. `is_late`: it is not waited for in the loop any longer."""

    __slots__ = ("begun", "is_late", "is_young", "until", "woken")

    def __init__(self, begun: BegunCommand) -> None:
        self.begun, self.is_young, self.is_late = begun, True, False
        late, deadline = begun.run.began + _LATE_SECONDS, begun.run.deadline
        self.until = late if deadline is None else min(late, deadline - _LOOK_SECONDS)
        self.woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wake(self) -> None:
        if not self.woken.done():
            self.woken.set_result(None)

    @property
    def has_much_to_read(self) -> bool:
        count = fcntl.ioctl(self.begun.link.shell.connection.out, termios.FIONREAD, b"\0" * 4)
        return bool(struct.unpack("i", count)[0] > _MAX_UNREAD_BYTES)


class _Commands:
    """The commands of one loop: who may begin, and who has ended. What watches them is open while there are some."""

    def __init__(self) -> None:
        self._ready: select.epoll | None = None
        self._places, self._queue = _YOUNG_AT_ONCE, deque[asyncio.Future[None]]()
        self._by_fd: dict[int, _Waiting] = {}
        self._running: dict[_Waiting, None] = {}
        self._is_looking = False

    async def turn(self) -> None:
        if self._places:
            self._places -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._places += 1

    def watch(self, waiting: _Waiting) -> None:
        self._running[waiting] = None
        if self._ready is None:
            self._ready = select.epoll()
            asyncio.get_running_loop().add_reader(self._ready.fileno(), self._on_ready)
        self._register(waiting, waiting.begun.link.shell.connection.done)
        if not self._is_looking:
            self._is_looking = True
            asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)

    def forget(self, waiting: _Waiting) -> None:
        del self._running[waiting]
        connection = waiting.begun.link.shell.connection
        for fd in (connection.done, connection.fileno()):
            if self._by_fd.get(fd) is waiting:
                del self._by_fd[fd]
        if waiting.is_young:
            self.leave()
        if not self._running and self._ready is not None:
            asyncio.get_running_loop().remove_reader(self._ready.fileno())
            self._ready.close()
            self._ready = None

    def _register(self, waiting: _Waiting, fd: int) -> None:
        """It wakes who waits once. A descriptor that was closed is registered no longer, whoever has its number now."""
        assert self._ready is not None
        self._by_fd[fd] = waiting
        events = select.EPOLLIN | select.EPOLLONESHOT
        try:
            try:
                self._ready.modify(fd, events)
            except FileNotFoundError:
                self._ready.register(fd, events)
        except (OSError, ValueError):  # the shell has just ended
            self._give_up(waiting)

    def _on_ready(self) -> None:
        assert self._ready is not None
        for fd, _ in self._ready.poll(0, _ENDED_AT_ONCE):
            if (waiting := self._by_fd.pop(fd, None)) is not None:
                waiting.is_late = fd != waiting.begun.link.shell.connection.done  # its supervisor has to tell something
                waiting.wake()

    def _look(self) -> None:
        now = time.monotonic()
        for waiting in list(self._running):
            if waiting.is_young and now > waiting.begun.run.began + _YOUNG_SECONDS:
                waiting.is_young = False
                self.leave()
                self._register(waiting, waiting.begun.link.shell.connection.fileno())
            try:
                is_late = now >= waiting.until or waiting.has_much_to_read
            except (OSError, ValueError):  # the shell has just ended
                is_late = True
            if is_late:
                self._give_up(waiting)
        self._is_looking = bool(self._running)
        if self._is_looking:
            asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)

    def _give_up(self, waiting: _Waiting) -> None:
        waiting.is_late = True
        waiting.wake()


_commands: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Commands] = weakref.WeakKeyDictionary()


def _commands_of(loop: asyncio.AbstractEventLoop) -> _Commands:
    found = _commands.get(loop)
    if found is None:
        found = _commands[loop] = _Commands()
    return found


async def _ended(
    environment: LiveEnvironment, commands: _Commands, waiting: _Waiting, cancel: CancelToken
) -> CommandResult | None:
    """The result of a command that ends soon; None if it has to be waited for otherwise."""
    begun = waiting.begun
    forget = cancel.on_cancel(begun.kill)
    try:
        while True:
            commands.watch(waiting)
            await waiting.woken
            ended = environment.end_begun(begun, waits=False)
            if ended is not None or waiting.is_late or begun.run.is_over:
                return ended
            waiting.woken = asyncio.get_running_loop().create_future()
    except asyncio.CancelledError:
        begun.kill()
        await _finished(environment, begun, cancel)
        raise
    finally:
        commands.forget(waiting)
        forget()


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

"""The event loop of a shell host process: descriptors, signals, and the end of children."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from typing import Callable, Iterable  # noqa: UP035  Python 3.8 knows no other place

OnChild = Callable[[int, int], object]  # a child's pid, and its status as waitpid returns it


class Events:
    """One poll object, and a pipe that signals arrive on."""

    def __init__(self, on_child: OnChild, *, on_term: Callable[[], object] | None, ignored: Iterable[int] = ()) -> None:
        """Without `on_term`, SIGTERM is ignored like the signals in `ignored`."""
        self._on_child = on_child
        self._poll = select.poll()
        self._handlers: dict[int, Callable[[], object]] = {}
        self.signals, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, signal.SIG_IGN if on_term is None else lambda *_: on_term())
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self.watch(self.signals, self.reap)

    def watch(self, fd: int, handler: Callable[[], object], events: int = select.POLLIN) -> None:
        self._handlers[fd] = handler
        self._poll.register(fd, events)

    def unwatch(self, fd: int) -> None:
        if self._handlers.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def wait(self, milliseconds: float | None = None) -> None:
        """Wait until something happens, and handle it."""
        for fd, _ in self._poll.poll(milliseconds):
            handler = self._handlers.get(fd)
            if handler is not None:  # an earlier one may have closed it
                handler()

    def close(self) -> None:
        """For a fork, which makes its own."""
        signal.set_wakeup_fd(-1)
        os.close(self.signals)
        os.close(self._write)

    def reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self.signals, 4096)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._on_child(pid, status)

"""Write lines to a server's standard input from any thread, without ever waiting for the server to read them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading


class Pipe:
    """Lines go out whole and in order. What the pipe does not take at once, the loop sends when it does."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._loop = asyncio.get_running_loop()
        self._descriptor = descriptor
        self._left = b""
        self._lock = threading.Lock()
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def is_blocked(self) -> bool:
        """Whether the server is behind with its reading."""
        return bool(self._left)

    def send(self, lines: bytes) -> None:
        """Raises OSError when nobody will read it."""
        with self._lock:
            if self._descriptor < 0:
                raise BrokenPipeError("the server's input is closed")
            if not self._left:
                lines = lines[self._written(lines) :]
                if not lines:
                    return
                self._loop.call_soon_threadsafe(self._watch)
            self._left += lines

    async def drained(self) -> None:
        """Until everything is sent, or cannot be."""
        while self._left:
            self._empty.clear()
            await self._empty.wait()

    def close(self) -> None:
        """On the loop's thread. What is left is not sent."""
        with self._lock:
            descriptor, self._descriptor, self._left = self._descriptor, -1, b""
        self._empty.set()
        if descriptor >= 0:
            self._loop.remove_writer(descriptor)
            os.close(descriptor)

    def _watch(self) -> None:
        if self._descriptor >= 0:
            self._loop.add_writer(self._descriptor, self._flush)

    def _flush(self) -> None:
        with self._lock:
            with contextlib.suppress(OSError):  # the server has gone, which whoever reads from it tells
                self._left = self._left[self._written(self._left) :]
                if self._left:
                    return
            self._left = b""
        self._loop.remove_writer(self._descriptor)
        self._empty.set()

    def _written(self, lines: bytes) -> int:
        try:
            return os.write(self._descriptor, lines)
        except BlockingIOError:
            return 0

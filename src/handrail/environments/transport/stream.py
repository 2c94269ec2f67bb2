"""A channel over the stream of an SDK, and the event loop that SDKs run in, on its own thread, while they are used."""

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from typing import Any, Protocol, TypeVar

from ..shell_host.connection import Fatal, Lost
from .link import Shared

T = TypeVar("T")
OPEN_SECONDS = 60.0
# An SDK retries; what has not got through by then is lost.
WRITE_SECONDS = 30.0
CLOSE_SECONDS = 10.0
_WINDOW_BYTES, _MAX_UNSENT_BYTES, _SHOWN_BYTES = 8 << 20, 2 << 20, 500
_NO_PYTHON = ("not found", "No such file", "code 127")
_MARGIN_SECONDS = 5.0


class Stream(Protocol):
    """A process in a cloud, as an SDK offers it. All methods run in the loop."""

    async def open(self, on_data: Callable[[bytes], None]) -> None:
        """Start the process. Its output goes to `on_data`, which never blocks."""

    async def write(self, data: bytes) -> None: ...

    async def wait(self) -> str:
        """Wait until it has ended. Returns the reason in words."""

    async def close(self) -> None:
        """End what is left of it, here and there."""


class StreamChannel:
    """Such a stream neither shows that the other side is gone nor slows down a sender: the shell host handles both."""

    window = _WINDOW_BYTES

    def __init__(self, stream: Stream, loop: "SdkLoop", *, where: str, client_timeout: float) -> None:
        self.where, self.client_timeout = where, client_timeout
        self._stream, self._loop = stream, loop
        self._changed = threading.Condition()
        self._incoming: deque[bytes] = deque()
        self._outgoing: deque[bytes] = deque()
        self._unsent, self._lost, self._is_closed = 0, "", False
        try:
            loop.run(stream.open(self._on_data), OPEN_SECONDS)
        except BaseException:
            self._close_stream()
            raise
        self._wanted = asyncio.Event()
        self._tasks = [asyncio.run_coroutine_threadsafe(work, loop.loop) for work in (self._write(), self._wait())]

    def send(self, data: bytes, end: float) -> None:
        with self._changed:
            while self._unsent > _MAX_UNSENT_BYTES and not self._lost:
                if not self._changed.wait(max(0.0, end - time.monotonic())):
                    raise Lost(f"{self.where} does not answer")
            if self._lost:
                raise Lost(self._lost)
            self._outgoing.append(data)
            self._unsent += len(data)
        self._loop.loop.call_soon_threadsafe(self._wanted.set)

    def receive(self, end: float | None) -> bytes:
        with self._changed:
            while not self._incoming:
                if self._lost:
                    raise Lost(self._lost)
                if not self._changed.wait(None if end is None else max(0.0, end - time.monotonic())):
                    raise Lost(f"{self.where} does not answer")
            data = b"".join(self._incoming)
            self._incoming.clear()
            return data

    def failure(self, noise: bytes) -> Exception:
        output = noise[-_SHOWN_BYTES:].decode("utf-8", "replace").strip()
        why = self._lost or f"{self.where} did not answer in time"
        if any(words in f"{output} {why}" for words in _NO_PYTHON):
            fix = "use an image with Python 3.8 or newer"
            return Fatal(f"python3 was not found in {self.where}; {fix} ({output or why})")
        return Fatal(f"{why}; it printed: {output}" if output else why)

    def close(self) -> None:
        with self._changed:
            if self._is_closed:
                return
            self._is_closed = True  # the frame that ends it must get out first
            self._changed.wait_for(lambda: not self._unsent or self._lost, CLOSE_SECONDS)
        self._close_stream()
        for task in self._tasks:
            task.cancel()
        self._lose(f"the connection to {self.where} was closed")

    def close_inherited(self) -> None:
        """Nothing to close: the loop stayed with the parent."""

    def _on_data(self, data: bytes) -> None:
        with self._changed:
            self._incoming.append(data)
            self._changed.notify_all()

    async def _write(self) -> None:
        try:
            while True:
                await self._wanted.wait()
                self._wanted.clear()
                while data := self._take():
                    async with asyncio.timeout(WRITE_SECONDS):
                        await self._stream.write(data)
                    with self._changed:
                        self._unsent -= len(data)
                        self._changed.notify_all()
        except TimeoutError:
            self._lose(f"{self.where} does not answer")
        except Exception as error:  # noqa: BLE001  an SDK raises anything
            self._lose(f"the connection to {self.where} is gone: {error}")

    def _take(self) -> bytes:
        with self._changed:
            data = b"".join(self._outgoing)
            self._outgoing.clear()
            return data

    async def _wait(self) -> None:
        try:
            why = await self._stream.wait()
        except Exception as error:  # noqa: BLE001  an SDK raises anything
            why = str(error)
        self._lose(f"the connection to {self.where} ended: {why}")

    def _lose(self, why: str) -> None:
        with self._changed:
            self._lost = self._lost or why
            self._changed.notify_all()

    def _close_stream(self) -> None:
        with contextlib.suppress(Exception):  # an SDK raises anything, and the shell host ends by itself
            self._loop.run(self._stream.close(), CLOSE_SECONDS)


class SdkLoop:
    """Runs coroutines for any thread."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop
        self._is_unwanted, self._is_running = asyncio.Event(), threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="handrail-sdk", daemon=True)
        self._thread.start()
        self._is_running.wait()

    def run(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        """Wait for the result. Raises TimeoutError if it takes longer, and whatever `work` raises."""
        future = asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, seconds), self.loop)
        try:
            return future.result(seconds + _MARGIN_SECONDS)
        except CancelledError:
            raise TimeoutError("it was cancelled") from None
        except BaseException:
            future.cancel()
            raise

    def end(self) -> None:
        self.loop.call_soon_threadsafe(self._is_unwanted.set)
        self._thread.join()

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._is_running.set()
        await self._is_unwanted.wait()


sdk_loops = Shared(SdkLoop, SdkLoop.end)

"""The event loop that cloud SDKs run in, on its own thread, from their first use to their last."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

T = TypeVar("T")

_MARGIN_SECONDS = 5.0


class SdkLoop:
    """Runs coroutines for any thread."""

    def __init__(self) -> None:
        self.users = 0
        self.loop: asyncio.AbstractEventLoop
        self._is_unwanted = asyncio.Event()
        self._is_running = threading.Event()
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


class SdkLoops:
    """Counts the users of the loop. After a fork the child gets its own."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._process, self._lock = os.getpid(), threading.Lock()
        self._current: SdkLoop | None = None

    def acquire(self) -> SdkLoop:
        if self._process != os.getpid():
            self._reset()
        with self._lock:
            self._current = self._current or SdkLoop()
            self._current.users += 1
            return self._current

    def release(self, loop: SdkLoop) -> None:
        if self._process != os.getpid():
            return  # it is the parent's
        with self._lock:
            loop.users -= 1
            if loop.users > 0:
                return
            self._current = None
        loop.end()


sdk_loops = SdkLoops()

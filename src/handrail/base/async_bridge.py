"""Run a coroutine from sync code, wherever that code happens to run.

asyncio is a third of what a start imports, so it is loaded when there is something to await.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable
from typing import TypeVar

from ..types import CancelToken

T = TypeVar("T")


def run_async(awaitable: Awaitable[T], *, timeout: float | None = None, cancel: CancelToken | None = None) -> T:
    """Run to the end and return the result. After `timeout` seconds, or when cancelled, the coroutine is cancelled and
    CallTimeout or CallCancelled is raised."""
    from .loops import run

    return run(awaitable, timeout=timeout, cancel=cancel)


def is_cancellation(error: BaseException) -> bool:
    """Whether it is asyncio's CancelledError."""
    known = sys.modules.get("asyncio.exceptions")
    return known is not None and isinstance(error, getattr(known, "CancelledError", ()))


def is_being_cancelled() -> bool:
    """Whether the running task is being cancelled; otherwise a CancelledError is just an exception."""
    import asyncio

    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0

"""Run a coroutine from sync code, wherever that code happens to run; and tell what kind of interruption an exception is.

asyncio is a third of what a start imports, so it is loaded when there is something to await.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Awaitable
from types import CodeType, ModuleType
from typing import TypeVar

from ..types import CancelToken

T = TypeVar("T")


def run_async(awaitable: Awaitable[T], *, timeout: float | None = None, cancel: CancelToken | None = None) -> T:
    """Run to the end and return the result. After `timeout` seconds, or when cancelled, the coroutine is cancelled and
    CallTimeout or CallCancelled is raised."""
    result: T = _loops().run(awaitable, timeout=timeout, cancel=cancel)
    return result


@functools.cache
def _loops() -> ModuleType:
    from . import loops  # loads asyncio

    return loops


def is_cancellation(error: BaseException) -> bool:
    """Whether it is asyncio's CancelledError."""
    known = sys.modules.get("asyncio.exceptions")
    return known is not None and isinstance(error, getattr(known, "CancelledError", ()))


def is_being_cancelled() -> bool:
    """Whether the running task is being cancelled; otherwise a CancelledError is just an exception."""
    import asyncio

    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def is_interrupt(error: BaseException) -> bool:
    """Whether it comes from the signal: Python raises it between any two instructions of the main thread, or in a handler of
    the signal. A `raise` statement elsewhere is the code's own doing."""
    if not isinstance(error, KeyboardInterrupt) or threading.current_thread() is not threading.main_thread():
        return False
    from opcode import opmap  # few programs ever come here

    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return True
    code = trace.tb_frame.f_code
    return code.co_code[trace.tb_lasti] != opmap["RAISE_VARARGS"] or _handles_the_signal(code)


def _handles_the_signal(code: CodeType) -> bool:
    import signal  # likewise

    handler = signal.getsignal(signal.SIGINT)
    handler = getattr(handler, "func", handler)  # asyncio's is a partial
    return code is getattr(handler, "__code__", None) or code.co_filename.endswith("asyncio/runners.py")

"""Tell the program's own Ctrl-C from a KeyboardInterrupt that somebody's code raises."""

from __future__ import annotations

import signal
import threading
from opcode import opmap
from types import CodeType, TracebackType

_RAISE = opmap["RAISE_VARARGS"]


def is_interrupt(error: BaseException) -> bool:
    """Whether it comes from the signal: Python raises it between any two instructions of the main thread, or in a handler of
    the signal. A `raise` statement elsewhere is the code's own doing."""
    if not isinstance(error, KeyboardInterrupt) or threading.current_thread() is not threading.main_thread():
        return False
    innermost = _innermost(error.__traceback__)
    if innermost is None:
        return True
    code = innermost.tb_frame.f_code
    return code.co_code[innermost.tb_lasti] != _RAISE or _handles_the_signal(code)


def _innermost(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def _handles_the_signal(code: CodeType) -> bool:
    handler = signal.getsignal(signal.SIGINT)
    handler = getattr(handler, "func", handler)  # asyncio's is a partial
    return code is getattr(handler, "__code__", None) or code.co_filename.endswith("asyncio/runners.py")

"""Tell the program's own Ctrl-C from a KeyboardInterrupt that somebody's code raises."""

from __future__ import annotations

import threading
from types import CodeType


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

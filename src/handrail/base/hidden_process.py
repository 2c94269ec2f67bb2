"""Hide what this process was given: API keys and tokens are in its environment, which `/proc/PID/environ` shows to every
other process of the same user, such as what an agent runs."""

from __future__ import annotations

import contextlib
import ctypes
import os

_PR_SET_DUMPABLE = 4


def hide_process() -> None:
    """Empty the block that `/proc/PID/environ` shows, and let no process of this user read this one's memory. Root's can.

    `os.environ` and what child processes inherit stay as they are. Nothing happens where the system has no such thing.
    """
    with contextlib.suppress(OSError, AttributeError, ValueError):
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        _empty_block(libc)


def _empty_block(libc: ctypes.CDLL) -> None:
    with open("/proc/self/stat", "rb") as file:
        start, end = map(int, file.read().rpartition(b")")[2].split()[47:49])
    if not 0 < start < end:
        return
    # The C library's list of variables points into the block: it gets copies first.
    libc.clearenv()
    for name, value in os.environb.items():
        os.putenv(name, value)
    ctypes.memset(start, 0, end - start)

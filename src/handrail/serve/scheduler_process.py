"""The scheduler beside the server: a separate process, as its jobs have no user to ask. It ends with the server."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import subprocess
import sys
from collections.abc import Iterator

_PR_SET_PDEATHSIG = 1
_END_SECONDS = 10


@contextlib.contextmanager
def scheduler() -> Iterator[None]:
    """While this is open, due jobs run; by another scheduler if one is already running."""
    command = [sys.executable, "-m", "handrail", "cron", "run"]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, preexec_fn=_end_with_parent, **quiet)  # type: ignore[call-overload]
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _end_with_parent() -> None:
    """Also if the server is killed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)

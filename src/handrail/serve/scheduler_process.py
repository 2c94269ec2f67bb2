"""The scheduler beside the server: a separate process, as its jobs have no user to ask. It ends with the server."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import subprocess
from collections.abc import Iterator

from ..base.self_command import self_command

_PR_SET_PDEATHSIG = 1
_END_SECONDS = 10


@contextlib.contextmanager
def scheduler() -> Iterator[None]:
    """While this is open, due jobs run; by another scheduler if one is already running."""
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(self_command("cron", "run"), preexec_fn=_end_with_parent, **quiet)  # type: ignore[call-overload]
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

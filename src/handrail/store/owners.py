"""Whose row is it, and does that process still run? Numbers of processes are used again, so the name holds when it began."""

from __future__ import annotations

import os


def owner() -> str:
    """This process, as no later one is called."""
    return f"{os.getpid()}:{_begin(os.getpid()) or 0}"


def is_alive(who: str) -> bool:
    """Whether a process that `owner` named still runs."""
    number, _, begin = who.partition(":")
    now = _begin(int(number))
    return now is not None and (begin == str(now) or "0" in (begin, str(now)))


def _begin(pid: int) -> int | None:
    """When a process began, in the system's count; 0 when that cannot be told, None when it does not run."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
            return None if fields[0] in (b"Z", b"X") else int(fields[19])
    except OSError:
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return 0

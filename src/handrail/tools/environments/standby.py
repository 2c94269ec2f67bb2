"""Wait inside of a container until nobody uses it any more, and then end it.

The text of this module is run there, by whatever Python 3.8 there is; it is the container's first process, or beside it:

    python3 -c TEXT idle 60            as the first one: take in orphans, and end when nobody has been here for 60 seconds
    python3 -c TEXT idle 60 beside     the same beside it, in the background: a signal ends process 1
    python3 -c TEXT leave 2 beside     end it now, if it is empty within 2 seconds; 3 is the exit code when it is not

It does not matter who is there: a runtime's shell, a process that was started to live on, a person who looks around. So a
runtime that was killed leaves a container that ends by itself, and one that shares it with another takes nothing away.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time

STOP_SIGNAL = signal.SIGPWR  # ends process 1. A command that ends all processes it can see sends another
SOMEBODY = 3  # the exit code of `leave`
_NAME = b"handrail-wait"


def source() -> str:
    """The text of this module."""
    from importlib.resources import files

    return (files(__package__) / "standby.py").read_text(encoding="utf-8")


def main(task: str, seconds: float, *, is_beside: bool) -> None:
    if task == "leave":
        _be_called()
        sys.exit(0 if _end_when_alone(0.0, seconds, is_beside) else SOMEBODY)
    if not is_beside:
        signal.signal(STOP_SIGNAL, lambda *_: os._exit(0))
        _be_called()
    elif _others(who_wait=True) or os.fork() != 0:
        return  # one is enough
    else:
        _settle()
    _end_when_alone(seconds, None, is_beside)


def _end_when_alone(seconds: float, within: float | None, is_beside: bool) -> bool:
    """True when it was ended, False when somebody was there for all of the time."""
    now = since = time.monotonic()
    end = None if within is None else now + within
    pause = min(2.0, max(0.02, seconds / 4))
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    while end is None or now < end:
        _reap()
        if _others():
            since = now
        elif now - since >= seconds:
            if is_beside:
                os.kill(1, STOP_SIGNAL)
            return True
        signal.sigtimedwait([signal.SIGCHLD], pause)
        now = time.monotonic()
    return False


def _others(*, who_wait: bool = False) -> bool:
    """Whether there are processes beside the first one and those that only wait, as this does; or, any of the latter."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) in (1, os.getpid()):
            continue
        try:
            with open(f"/proc/{pid}/comm", "rb") as file:
                is_one_of_us = file.read().strip() == _NAME
        except OSError:
            continue  # it has just ended
        if is_one_of_us == who_wait:
            return True
    return False


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _settle() -> None:
    os.setsid()
    _be_called()
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)


def _be_called() -> None:
    """Be called so in `ps`, instead of by this whole text."""
    with open("/proc/self/comm", "wb") as file:
        file.write(_NAME)
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    if 0 < start < end:
        ctypes.memset(start, 0, end - start)
        ctypes.memmove(start, _NAME, min(len(_NAME), end - start - 1))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), is_beside=sys.argv[3:] == ["beside"])

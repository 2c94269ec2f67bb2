"""The idle watcher: waits inside a container until nothing uses it any longer, and then ends it.

The text of this module is run there, by any Python from 3.8 on, as the container's first process or beside it:

    python3 -c TEXT idle 60            as process 1: reap orphans, and end when nothing else has run here for 60 seconds
    python3 -c TEXT idle 60 beside     the same beside it, in the background: a signal ends process 1
    python3 -c TEXT leave 2            end it now if nothing else runs there; a closed shell has 2 seconds to end

It does not matter what uses it: a runtime's shell, a process that was started to survive, a user who looks around. So a killed
runtime leaves a container that ends by itself, and one that shares it with another runtime takes nothing away.
"""

import contextlib
import ctypes
import os
import signal
import sys
import time

STOP_SIGNAL = signal.SIGPWR  # ends process 1. A command that kills all processes it can see sends another
IN_USE = 3  # the exit code of `leave`
_NAME = b"handrail-wait"
_ENDING = {b"handrail-relay", b"handrail-fork", b"handrail-shell", b"handrail-tunnel"}


def source() -> str:
    """The text of this module."""
    from importlib.resources import files  # not when this runs in a container

    return (files(__package__) / "idle_watcher.py").read_text(encoding="utf-8")


def main(task: str, seconds: float, *, is_beside: bool) -> None:
    if task == "leave":
        _set_title()
        sys.exit(_leave(seconds))
    if not is_beside:
        signal.signal(STOP_SIGNAL, lambda *_: os._exit(0))
        _set_title()
    elif _NAME in _others() or os.fork() != 0:
        return  # one is enough
    else:
        os.setsid()
        _set_title()
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
    since = time.monotonic()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    while time.monotonic() - since < seconds:
        signal.sigtimedwait([signal.SIGCHLD], min(2.0, seconds / 4))
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if _others() - {_NAME}:
            since = time.monotonic()
    if is_beside:
        os.kill(1, STOP_SIGNAL)


def _leave(seconds: float) -> int:
    end = time.monotonic() + seconds
    while True:
        names = _others() - {_NAME}
        if not names:
            os.kill(1, STOP_SIGNAL)
            return 0
        # What remains of the shell that was just closed is about to end.
        if names - _ENDING or time.monotonic() >= end:
            return IN_USE
        time.sleep(0.01)


def _others() -> set[bytes]:
    """The names of all processes except the first one and this one."""
    names: set[bytes] = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) not in (1, os.getpid()):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", "rb") as file:  # it has just ended
                names.add(file.read().strip())
    return names


def _set_title() -> None:
    """Show a name in `ps` instead of this whole text."""
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

"""The id of a runtime, and whether that runtime still runs. What is stored outside this process has the id of its maker.

An id consists of the machine, its boot, the process namespace, the user, the pid and the process's start time: a pid alone
means little, as pids are reused.
"""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache


def runtime_id() -> str:
    """The id of this process, unique for ever, made of characters that labels and file names allow."""
    return _named(os.getpid())


def has_exited(owner: str) -> bool:
    """Whether the runtime with that id has certainly exited. False for what cannot be seen from here."""
    parts = owner.split("-")
    if len(parts) != 6 or not all(part.isdigit() for part in parts[2:]) or parts[0] != _machine():
        return False
    _, boot, namespace, user, pid, started = parts
    if boot != boot_id():
        return True
    # Some machines hide the processes of other users from all but root.
    if namespace != _namespace() or os.geteuid() not in (0, int(user)):
        return False
    now = _start_time(int(pid))
    return now is None or (now != int(started) and 0 not in (now, int(started)))


def pid_of(owner: str) -> int:
    """The pid that the runtime has or had."""
    return int(owner.split("-")[4])


@lru_cache(maxsize=1)  # a fork has its own
def _named(pid: int) -> str:
    return f"{_machine()}-{boot_id()}-{_namespace()}-{os.getuid()}-{pid}-{_start_time(pid) or 0}"


@lru_cache(maxsize=1)
def _machine() -> str:
    # A cloned machine has the same id, but seldom the same name.
    return hashlib.sha256(f"{_read('/etc/machine-id')} {os.uname().nodename}".encode()).hexdigest()[:8]


@lru_cache(maxsize=1)
def boot_id() -> str:
    """The same until the machine starts again."""
    return _read("/proc/sys/kernel/random/boot_id").partition("-")[0] or "0"


def _namespace() -> str:
    try:
        return str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:
        return "0"


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return ""


def _start_time(pid: int) -> int | None:
    """When a process started, in clock ticks; 0 when that is unknown, None when it does not run."""
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

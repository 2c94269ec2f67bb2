"""Whose it is, and does its maker still run? What is kept outside of this process carries the name of the runtime that made it.

A runtime is named by its machine, the machine's boot, its process namespace, its user, and its process with the time that it
began at: the number of a process alone means little, as numbers are used again.
"""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache


def runtime_id() -> str:
    """The name of this process, which no other ever has, in letters that labels and file names can have."""
    return _named(os.getpid())


def has_exited(owner: str) -> bool:
    """Whether the runtime of that name has certainly ended. What cannot be seen from here is not judged."""
    parts = owner.split("-")
    if len(parts) != 6 or not all(part.isdigit() for part in parts[2:]) or parts[0] != _machine():
        return False
    _, boot, namespace, user, pid, begin = parts
    if boot != _boot():
        return True
    # Some machines hide the processes of other users from all but root.
    if namespace != _namespace() or os.geteuid() not in (0, int(user)):
        return False
    now = _begin(int(pid))
    return now is None or (now != int(begin) and 0 not in (now, int(begin)))


def pid_of(owner: str) -> int:
    """The number that the runtime's process has or had."""
    return int(owner.split("-")[4])


@lru_cache(maxsize=1)  # a fork is another
def _named(pid: int) -> str:
    return f"{_machine()}-{_boot()}-{_namespace()}-{os.getuid()}-{pid}-{_begin(pid) or 0}"


@lru_cache(maxsize=1)
def _machine() -> str:
    # A clone of a machine has its id, but seldom its name.
    return hashlib.sha256(f"{_read('/etc/machine-id')} {os.uname().nodename}".encode()).hexdigest()[:8]


@lru_cache(maxsize=1)
def _boot() -> str:
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

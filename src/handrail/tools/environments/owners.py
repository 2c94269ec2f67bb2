"""Who made it: tells what a dead runtime has left behind from what is still in use.

Whatever an environment leaves outside of this process, such as a container, carries the name of the runtime that made it. A
runtime is named by the machine's boot, its process namespace, its user, and its process: a pid alone means little.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from .far import proc


class Orphan(NamedTuple):
    """Something that was left behind. `backend` is the name of the environment's kind, `name` is what it is called there."""

    backend: str
    name: str
    task: str = ""

    def __str__(self) -> str:
        return f"{self.backend}: {self.name}" + (f", of the task {self.task}" if self.task else "")


def this_runtime() -> str:
    """The name of this process, in letters that labels and file names can have."""
    pid = os.getpid()
    stat = proc.stat_of(pid)
    return "-".join((*_place(), str(os.getuid()), str(pid), str(stat.start if stat is not None else 0)))


def is_gone(owner: str) -> bool:
    """Whether the runtime of that name has certainly ended. What cannot be seen from here is not judged."""
    boot, _, rest = owner.partition("-")
    namespace, _, rest = rest.partition("-")
    if (boot, namespace) != _place():
        return False
    try:
        user, pid, start = map(int, rest.split("-"))
    except ValueError:
        return False
    # Some machines hide the processes of other users from all but root.
    may_see = os.geteuid() in (0, user)
    return may_see and not proc.is_alive(pid, start)


def _place() -> tuple[str, str]:
    try:
        namespace = str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:
        namespace = "0"
    return proc.boot_id().partition("-")[0], namespace

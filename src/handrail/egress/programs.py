"""The program at the other end of a local connection, for questions."""

from __future__ import annotations

import os
from collections.abc import Iterator


def program_of(port: int, kind: str = "tcp") -> str:
    """The name of a program that has a socket at this local port; empty if that cannot be seen."""
    wanted = {f"socket:[{inode}]" for inode in _sockets_at(port, kind)}
    if not wanted:
        return ""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if any(os.readlink(f"/proc/{pid}/fd/{fd}") in wanted for fd in os.listdir(f"/proc/{pid}/fd")):
                with open(f"/proc/{pid}/comm") as file:
                    return file.read().strip()
        except OSError:  # it has ended, or is somebody else's
            continue
    return ""


def _sockets_at(port: int, kind: str) -> Iterator[str]:
    for table in (f"/proc/net/{kind}", f"/proc/net/{kind}6"):
        try:
            with open(table) as file:
                rows = [line.split() for line in file.readlines()[1:]]
        except OSError:
            continue
        yield from (row[9] for row in rows if row[9] != "0" and int(row[1].rpartition(":")[2], 16) == port)

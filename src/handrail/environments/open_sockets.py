"""The sockets of programs on this machine that have a path."""

from __future__ import annotations

import os
from collections.abc import Collection


def open_sockets(outside_of: Collection[str]) -> list[str]:
    """Those that exist now, and lie in none of these folders."""
    try:
        with open("/proc/net/unix", "rb") as file:
            lines = file.readlines()[1:]
    except OSError:
        return []
    words = (line.rstrip(b"\n").split(b" ", 7) for line in lines)
    paths = {os.path.realpath(os.fsdecode(each[7])) for each in words if len(each) > 7 and each[7].startswith(b"/")}
    covered = tuple(os.path.realpath(folder) + "/" for folder in outside_of)
    return sorted(path for path in paths if not path.startswith(covered) and os.path.exists(path))

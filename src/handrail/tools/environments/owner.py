"""Who made a thing that is kept elsewhere: a mark by which a later process sees that its maker is gone."""

from __future__ import annotations

import hashlib
import os
import re
import socket
from functools import cache

from .far import proc

# What clouds allow in a label's value.
_LONGEST = 63


def mark() -> str:
    """Of this process: machine, the machine's last start, process."""
    stat = proc.stat_of(os.getpid())
    return f"{_machine()}-{proc.boot_id()[:8]}-{os.getpid()}-{stat.start if stat else 0}"


def is_gone(mark: str) -> bool:
    """Whether a process of this machine made it that has ended. Of other machines nobody here can tell."""
    words = mark.split("-")
    if len(words) != 4 or words[0] != _machine() or not (words[2].isdigit() and words[3].isdigit()):
        return False
    return words[1] != proc.boot_id()[:8] or not proc.is_alive(int(words[2]), int(words[3]))


def label(text: str) -> str:
    """The text as a label's value, still different from every other."""
    if re.fullmatch(r"[A-Za-z0-9._-]+", text) and len(text) <= _LONGEST - 15:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', text)[: _LONGEST - 30]}-{digest}"


@cache
def _machine() -> str:
    try:
        with open("/etc/machine-id") as file:
            name = file.read().strip()
    except OSError:
        name = ""
    # A clone of a machine has its id, but seldom its name.
    return hashlib.sha256(f"{name} {socket.gethostname()} {os.getuid()}".encode()).hexdigest()[:8]

"""Where a service lives: its folder, its address, its control group."""

from __future__ import annotations

import socket
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Not the configured temp folder: a unix socket's path has 108 bytes, and /var is private to a caretaker.
_TEMP = Path("/tmp")
_PREFIX = "handrail-svc."


def folder_of(run: str, name: str) -> Path:
    return _TEMP / f"{_PREFIX}{run}.{name}"


def folders() -> list[Path]:
    """Those of every run on this machine, living or dead."""
    return sorted(_TEMP.glob(f"{_PREFIX}*"))


def address_of(folder: Path) -> str:
    """An abstract socket: only one process can have it, and the kernel takes it back from the dead."""
    return f"\0{folder.name}"


def claim(folder: Path) -> socket.socket | None:
    """The folder's address, if nobody has it."""
    claimed = socket.socket(socket.AF_UNIX)
    try:
        claimed.bind(address_of(folder))
    except OSError:
        claimed.close()
        return None
    return claimed


def control_group_of(folder: Path) -> str:
    return f"/{folder.name}"


def control_groups(name: str) -> list[Path]:
    """The control groups of this name in every hierarchy, with those inside them, inner ones first."""
    top = Path("/sys/fs/cgroup")
    outer = [*top.glob(name.strip("/")), *top.glob(f"*/{name.strip('/')}")]
    found = {inner.parent for group in outer for inner in group.rglob("cgroup.procs")}
    return sorted(found, key=lambda path: -len(path.parts))

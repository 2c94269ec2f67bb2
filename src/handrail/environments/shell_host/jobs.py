"""Background processes as seen from outside: by their folders, which outlive whoever started them."""

from __future__ import annotations

import os
import socket
from typing import Any

from . import job_status, proc, wire
from .job_log import LogPiece, read_log, remove_folder
from .wire import Packet

_ANSWER_SECONDS = 5.0
_KILL_SECONDS = 2.0


def default_folder() -> str:
    """Where a machine on which nothing of ours is installed keeps them: of this user alone, and gone after a restart."""
    # Not XDG_RUNTIME_DIR: it is removed with the user's last login, and a process may have to be found after that.
    return f"/tmp/handrail-{os.getuid()}"


def own_folder(folder: str) -> str:
    """Make the folder if it is missing. In a place that others can write to it must be ours, and closed to them."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    found = os.stat(folder)
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise PermissionError(1, f"{folder} belongs to somebody else or is open to others; remove it")
    return folder


def poll(folder: str) -> Packet:
    """Its status, with `state`: running, ended, or lost (its minder was killed, or the machine restarted).

    `is_minded` is true until all that it started has ended too.
    """
    status = job_status.read(folder)
    is_minded = status.get("boot") == proc.boot_id() and proc.is_alive(status["minder"], status["minder_start"])
    if status.get("code") is None and is_minded:
        return {**status, "state": "running", "is_minded": True}
    status = job_status.read(folder)  # it may have ended between the two looks
    return {**status, "state": "lost" if status.get("code") is None else "ended", "is_minded": is_minded}


def log(folder: str, offset: int, max_bytes: int) -> LogPiece:
    return read_log(folder, offset, max_bytes)


def ask(folder: str, op: str, **details: Any) -> Packet | None:
    """Ask the minder. None when there is none any more."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as minder:
        minder.settimeout(_ANSWER_SECONDS)
        try:
            here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            return None
        try:
            minder.connect(f"/proc/self/fd/{here}/control")
            wire.send(minder, {"op": op, **details})
            return wire.receive(minder)[0]
        except (ConnectionError, FileNotFoundError):
            return None
        finally:
            os.close(here)


def known(root: str) -> list[str]:
    """The ids of all that have a folder under `root`, the oldest first."""
    try:
        with os.scandir(root) as entries:
            found = [(entry.stat().st_mtime, entry.name) for entry in entries if job_status.exists(entry.path)]
    except FileNotFoundError:
        return []
    return [name for _, name in sorted(found)]


def prune(root: str) -> None:
    """Remove what is left of those that were not to outlive their shell, and whose keeper could not do it any more."""
    for name in known(root):
        folder = os.path.join(root, name)
        try:
            status = poll(folder)
        except OSError:
            continue  # it is just being removed
        has_owner = status["boot"] == proc.boot_id() and proc.is_alive(status["keeper"], status["keeper_start"])
        if not (status["survives"] or has_owner or status["state"] == "running"):
            forget(folder)


def forget(folder: str) -> None:
    """Remove what is left of one that has ended, or lost its minder."""
    end_orphan(folder)
    remove_folder(folder)


def end_orphan(folder: str) -> None:
    """Kill a process that goes on though its minder was killed, with all below it."""
    try:
        status = poll(folder)
    except OSError:
        return
    pid, start = status.get("pid", 0), status.get("start", 0)
    if status["state"] != "lost" or status.get("boot") != proc.boot_id():
        return

    def find() -> list[int]:
        return [pid, *proc.tree(pid)] if proc.is_alive(pid, start) else []

    proc.stop_and_kill(find, lambda: None, seconds=_KILL_SECONDS)

"""Background processes as seen from outside: through their folders, which outlive whoever started them."""

from __future__ import annotations

import os
import socket
from typing import Any

from . import job_folder, proc, wire
from .job_folder import remove_folder
from .wire import Packet

_ANSWER_SECONDS = 5.0
_KILL_SECONDS = 2.0


def default_folder() -> str:
    """Where a machine without a Handrail installation keeps them: private to this user, and gone after a reboot."""
    # Not XDG_RUNTIME_DIR: it is removed at the user's last logout, and a process may have to be found after that.
    return f"/tmp/handrail-{os.getuid()}"


def journal_folder(name: str) -> str:
    """Where such a machine keeps the journal of the Handrail elsewhere that has this name; empty if nowhere."""
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    for folder in (os.path.join(home, "handrail"), default_folder()):
        try:
            return private_folder(os.path.join(private_folder(folder), f"journal-{name}"))
        except OSError:
            continue
    return ""


def private_folder(folder: str) -> str:
    """Create the folder if it is missing. It must belong to this user and not be writable by others."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    found = os.stat(folder)
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise PermissionError(1, f"{folder} belongs to another user or is writable by others; remove it")
    return folder


def poll(folder: str) -> Packet:
    """Its status, with `state`: running, ended, or lost (its job supervisor was killed, or the machine rebooted).

    `is_supervised` is true until everything that it started has ended too.
    """
    status = job_folder.read_status(folder)
    is_supervised = status.get("boot") == proc.boot_id() and _lives(status, "minder")
    if status.get("code") is None and is_supervised:
        return {**status, "state": "running", "is_supervised": True}
    status = job_folder.read_status(folder)  # it may have ended between the two reads
    return {**status, "state": "lost" if status.get("code") is None else "ended", "is_supervised": is_supervised}


def ask(folder: str, op: str, **details: Any) -> Packet | None:
    """Ask the job supervisor. None if it has ended."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as supervisor:
        supervisor.settimeout(_ANSWER_SECONDS)
        try:
            opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            return None
        try:
            supervisor.connect(f"/proc/self/fd/{opened}/control")
            wire.send(supervisor, {"op": op, **details})
            return wire.receive(supervisor)[0]
        except (ConnectionError, FileNotFoundError):
            return None
        finally:
            os.close(opened)


def known(root: str) -> list[str]:
    """The ids of all processes with a folder under `root`, the oldest first."""
    try:
        with os.scandir(root) as entries:
            found = [(entry.stat().st_mtime, entry.name) for entry in entries if job_folder.has_status(entry.path)]
    except FileNotFoundError:
        return []
    return [name for _, name in sorted(found)]


def prune(root: str) -> None:
    """Remove what is left of processes that should have ended with their shell, and whose shell supervisor was killed."""
    for name in known(root):
        folder = os.path.join(root, name)
        try:
            status = poll(folder)
        except OSError:
            continue  # it is being removed
        has_owner = status["boot"] == proc.boot_id() and _lives(status, "keeper")
        if not (status["survives"] or has_owner or status["state"] == "running"):
            forget(folder)


def forget(folder: str) -> None:
    """Remove what is left of one that has ended, or lost its supervisor."""
    end_orphan(folder)
    remove_folder(folder)


def _lives(status: Packet, which: str) -> bool:
    start = status[f"{which}_start"]
    return proc.is_alive(proc.pid_here(status[which], start, status.get("pid_namespace", 0)), start)


def pid_outside(folder: str) -> int:
    """The pid in this process's namespace of the process of a folder; 0 if it has ended. Commands may know it by another."""
    status = job_folder.read_status(folder)
    return proc.pid_here(status["pid"], status["start"], status.get("pid_namespace", 0))


def end_orphan(folder: str) -> None:
    """Kill a process that outlived its job supervisor, with its descendants; also those that have outlived it, too."""
    try:
        status = poll(folder)
    except OSError:
        return
    if status["state"] != "lost" or status.get("boot") != proc.boot_id():
        return
    start, inner, of_namespace = status.get("start", 0), status.get("pid", 0), status.get("pid_namespace", 0)
    pid = proc.pid_here(inner, start, of_namespace)

    def find() -> list[int]:
        alive = [pid] if proc.is_alive(pid, start) else []
        roots = {*alive, *(proc.in_session(inner, start, of_namespace) if inner and start else ())}
        return [each for root in roots for each in (root, *proc.tree(root))]

    proc.stop_and_kill(find, lambda: None, seconds=_KILL_SECONDS)

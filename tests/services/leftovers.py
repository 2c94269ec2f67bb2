"""Remove what a service leaves outside its namespaces: files, control groups, bridges, processes that carry its mark."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from ..support import wait_until
from . import places

# The variable that marks the processes of a service which cannot have a process namespace.
MARK = "HANDRAIL_SERVICE"
_LEAVING_SECONDS = 10.0


def expect_none(what: str, find: Callable[[], list[str]]) -> None:
    """For the end of a service. What is still there then was left by a test, or by the code that it tested."""
    wait_until(
        lambda: not find(), timeout=_LEAVING_SECONDS, otherwise=lambda: f"{what} were left behind: {', '.join(find())}"
    )


def sweep() -> None:
    """Clean up after every service whose caretaker was killed; what somebody uses is left alone."""
    for folder in places.folders():
        claimed = places.claim(folder)
        if claimed is not None:
            with claimed:
                remove(folder)


def remove(folder: Path) -> None:
    """Again, when something that was just started to clean up after a container has written there meanwhile."""
    wait_until(lambda: _try_to_remove(folder), otherwise=lambda: f"{folder} cannot be removed")


def _try_to_remove(folder: Path) -> bool:
    end(marked(folder))
    _unmount_below(folder)
    _remove_bridges(folder)
    _remove_control_groups(folder)
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def marked(folder: Path) -> set[int]:
    """The processes that carry the folder's mark or have it among their own mounts, and all that they started."""
    children: dict[int, list[int]] = {}
    found = []
    for pid in processes():
        with contextlib.suppress(OSError):
            children.setdefault(_parent(pid), []).append(pid)
            if _is_marked(pid, folder):
                found.append(pid)
    family: set[int] = set()
    while found:
        pid = found.pop()
        if pid not in family:
            family.add(pid)
            found += children.get(pid, [])
    return family - {os.getpid()}


def _is_marked(pid: int, folder: Path) -> bool:
    process = Path(f"/proc/{pid}")
    if f"{MARK}={folder}".encode() in (process / "environ").read_bytes().split(b"\0"):
        return True
    if os.readlink(process / "ns/mnt") == os.readlink("/proc/self/ns/mnt"):
        return False
    return f"{folder}/".encode() in (process / "mountinfo").read_bytes()


def processes() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def in_session(session: int) -> list[int]:
    return [pid for pid in processes() if is_running(pid) and _session(pid) == session]


def end(pids: set[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_until(
        lambda: not any(map(is_running, pids)), otherwise=lambda: f"{sorted(filter(is_running, pids))} do not end"
    )


def is_running(pid: int) -> bool:
    """A zombie does not run: it waits for its parent."""
    try:
        return _stat(pid)[0] not in "ZX"
    except OSError:
        return False


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return -1


def _parent(pid: int) -> int:
    return int(_stat(pid)[1])


def _stat(pid: int) -> list[str]:
    # The name before the last bracket may contain anything.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _unmount_below(folder: Path) -> None:
    mounted = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for target in reversed(mounted):
        if Path(target).is_relative_to(folder):
            subprocess.run(["umount", "--lazy", target], check=True)


def _remove_bridges(folder: Path) -> None:
    """Docker makes a bridge in the machine's own network for every network that a test creates."""
    store = folder / "data" / "network" / "files" / "local-kv.db"
    identifiers = set(re.findall(rb"[0-9a-f]{64}", store.read_bytes())) if store.exists() else set()
    for identifier in identifiers:
        bridge = f"br-{identifier[:12].decode()}"
        if Path("/sys/class/net", bridge).exists():
            subprocess.run(["ip", "link", "delete", bridge], check=True)


def _remove_control_groups(folder: Path) -> None:
    ours = [places.control_group_of(folder)]
    ours += [f"libpod_parent/libpod-{path.name}" for path in (folder / "storage" / "overlay-containers").glob("*/")]
    for group in (group for name in ours for group in places.control_groups(name)):
        wait_until(lambda group=group: _rmdir(group), otherwise=lambda group=group: f"{group} is still in use")
    for shared in places.control_groups("libpod_parent"):
        _rmdir(shared)


def _rmdir(group: Path) -> bool:
    try:
        group.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True

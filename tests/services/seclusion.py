"""What makes a caretaker's process leave no trace: a process 1 of its own, and private places to write to."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from . import leftovers

_CLONE_NEWNET = 0x40000000


def flags(*, processes: bool) -> list[str]:
    """Of `unshare`. Without a process namespace the processes must carry `leftovers.MARK`."""
    return ["--mount", *(["--pid", "--fork", "--kill-child", "--mount-proc"] if processes else [])]


def process_namespace() -> str:
    return os.readlink("/proc/self/ns/pid")


def be_process_one() -> None:
    """Go on in a child. Process 1 takes in the orphans and ends when the child does; the kernel then ends all others."""
    child = os.fork()
    if child == 0:
        return
    while True:
        pid, status = os.wait()
        if pid == child:
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def keep_writes_private() -> None:
    """What is written to /run, /etc and /var from here on nobody else sees, and it is gone with the namespace."""
    with contextlib.ExitStack() as held:
        kept = {
            place: held.enter_context(_open_folder(place)) for place in _own_folders() if place.is_relative_to("/run")
        }
        _mount("tmpfs", "/run")
        for folder, descriptor in kept.items():
            folder.mkdir(parents=True, exist_ok=True)
            # By its name it would be the new, empty one.
            subprocess.run(
                ["mount", "--no-canonicalize", "--bind", f"/proc/{os.getpid()}/fd/{descriptor}", folder], check=True
            )
    for place in ("/etc", "/var"):
        private = Path("/run/private" + place)
        for part in ("upper", "work"):
            (private / part).mkdir(parents=True)
        _mount("overlay", place, f"lowerdir={place},upperdir={private}/upper,workdir={private}/work")
    Path("/run/lock").mkdir()


def _own_folders() -> list[Path]:
    """What this process goes on to need: the tests, the package and the interpreter, outer folders first."""
    return sorted({Path(__file__).resolve().parents[2], *map(Path, (sys.prefix, sys.base_prefix))})


@contextlib.contextmanager
def _open_folder(place: Path) -> Iterator[int]:
    descriptor = os.open(place, os.O_PATH)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def leave_network() -> None:
    """Go to a network of one's own, with a loopback. Not a flag of `unshare`: an abstract address stays behind."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare the network")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def end_others() -> None:
    """End every other process of this namespace."""
    leftovers.end({pid for pid in leftovers.processes() if pid not in (1, os.getpid())})


def _mount(kind: str, place: str, options: str = "defaults") -> None:
    subprocess.run(["mount", "-t", kind, "-o", options, kind, place], check=True)

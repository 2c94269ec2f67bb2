"""The connections to ssh hosts that the environments of this process share: OpenSSH's own multiplexing, in a private folder.

The first session to a host makes the connection, which goes to the background (`ControlPersist`); later ones use it, without
another login. It ends a second after its last session, also when this process was killed; the last environment ends it at once.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator

from .far import proc

_PREFIX = "handrail-ssh"
# A socket's address has 107 bytes; ssh adds 17 to its name while it makes one.
_LONGEST_PLACE = 40
_END_SECONDS = 2.0
_PERSIST_SECONDS = 1


class Connections:
    """Counts who uses the folder. After a fork the child has one of its own."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._process, self._lock = os.getpid(), threading.Lock()
        self._folder, self._users = "", 0

    def take(self) -> str:
        """The folder for control sockets. To be given back."""
        if self._process != os.getpid():
            self._reset()
        with self._lock:
            if self._users == 0:
                self._folder = _make_folder()
            self._users += 1
            return self._folder

    def give_back(self, folder: str) -> None:
        with self._lock:
            if self._process != os.getpid() or folder != self._folder:
                return  # it is the parent's
            self._users -= 1
            if self._users == 0:
                _end(folder)


connections = Connections()


def options(folder: str, name: str) -> list[str]:
    """For ssh: share a connection under this name."""
    shared = {"ControlMaster": "auto", "ControlPath": f"{folder}/{name}", "ControlPersist": str(_PERSIST_SECONDS)}
    return [word for key, value in shared.items() for word in ("-o", f"{key}={value}")]


def prune(*, dry_run: bool) -> list[str]:
    """What processes that were killed have left, and is removed unless `dry_run`."""
    found = [folder for folder in _folders() if not _has_owner(folder)]
    if not dry_run:
        for folder in found:
            _end(folder)
    return [f"{folder}, of a process that has ended" for folder in found]


def _places() -> list[str]:
    places = (os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir(), "/tmp")
    return [place for place in places if os.path.isdir(place) and len(place) <= _LONGEST_PLACE]


def _make_folder() -> str:
    stat = proc.stat_of(os.getpid())
    place = next(place for place in _places() if os.access(place, os.W_OK | os.X_OK))
    return tempfile.mkdtemp(prefix=f"{_PREFIX}.{os.getpid()}.{stat.start if stat else 0}.", dir=place)


def _folders() -> Iterator[str]:
    for place in dict.fromkeys(map(os.path.realpath, _places())):
        with os.scandir(place) as entries:
            yield from (
                entry.path
                for entry in entries
                if entry.name.startswith(f"{_PREFIX}.") and entry.stat(follow_symlinks=False).st_uid == os.getuid()
            )


def _has_owner(folder: str) -> bool:
    words = os.path.basename(folder).split(".")
    return len(words) > 3 and words[1].isdigit() and words[2].isdigit() and proc.is_alive(int(words[1]), int(words[2]))


def _end(folder: str) -> None:
    """End the connections of a folder, and remove it."""
    for name in os.listdir(folder):
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):  # it ends by itself, or hangs with its host
            subprocess.run(
                ["ssh", "-o", f"ControlPath={folder}/{name}", "-O", "exit", "any"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_END_SECONDS,
                check=False,
            )
    end = time.monotonic() + _END_SECONDS
    while os.listdir(folder) and time.monotonic() < end:
        time.sleep(0.001)
    shutil.rmtree(folder, ignore_errors=True)

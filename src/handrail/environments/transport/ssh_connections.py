"""SSH connections that the environments of this process share: OpenSSH's multiplexing, in a private folder.

The first session to a host opens the connection, which goes to the background (`ControlPersist`); later ones use it without
another login. It ends a second after its last session, also if this process was killed; the last environment ends it immediately.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
import time

from .. import private_dirs

_PREFIX = "handrail-ssh"
_END_SECONDS = 2.0
_PERSIST_SECONDS = 1


class Connections:
    """Counts the users of the folder. After a fork the child gets its own."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._process, self._lock = os.getpid(), threading.Lock()
        self._folder, self._users = "", 0

    def acquire(self) -> str:
        """The folder for control sockets. The caller releases it."""
        if self._process != os.getpid():
            self._reset()
        with self._lock:
            if self._users == 0:
                self._folder = private_dirs.make(_PREFIX)
            self._users += 1
            return self._folder

    def release(self, folder: str) -> None:
        with self._lock:
            if self._process != os.getpid() or folder != self._folder:
                return  # it is the parent's
            self._users -= 1
            if self._users == 0:
                _end(folder)


connections = Connections()


def options(folder: str, name: str) -> list[str]:
    """Options of ssh to share a connection under this name."""
    shared = {"ControlMaster": "auto", "ControlPath": f"{folder}/{name}", "ControlPersist": str(_PERSIST_SECONDS)}
    return [word for key, value in shared.items() for word in ("-o", f"{key}={value}")]


def prune(*, dry_run: bool) -> list[str]:
    """Remove what killed processes left, unless `dry_run`. Returns one line each."""
    found = private_dirs.left_behind(_PREFIX)
    if not dry_run:
        for folder in found:
            _end(folder)
    return [f"{folder}, of a process that has ended" for folder in found]


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

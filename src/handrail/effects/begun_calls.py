"""The calls that have begun, one line each, so that the next runtime knows whose an interrupted call was.

Every process appends to a file of its own, named by its runtime id; the file is emptied when nothing is open and it is long.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from pathlib import Path
from typing import Any

from ..base.own_process import has_exited, runtime_id

BEGUN_FOLDER = "begun-calls"
_MAX_BYTES = 1 << 20


class BegunCalls:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._fd, self._owner, self._bytes = -1, "", 0
        self._open: set[int] = set()

    def begin(self, number: int, about: dict[str, Any]) -> None:
        with self._lock:
            if self._fd < 0 or self._owner != runtime_id():  # also after a fork
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._owner = runtime_id()
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
                self._fd = os.open(self._folder / self._owner, flags, 0o600)
                self._bytes = os.fstat(self._fd).st_size
            self._open.add(number)
            self._bytes += os.write(self._fd, json.dumps({"number": number, **about}).encode() + b"\n")

    def returned(self, number: int, about: dict[str, Any]) -> None:
        """It has ended well, and its record is still to be written."""
        with self._lock:
            self._bytes += os.write(self._fd, json.dumps({"returned": number, **about}).encode() + b"\n")

    def end(self, number: int) -> None:
        """Its record is kept by now, or it needs none."""
        with self._lock:
            self._open.discard(number)
            if self._fd >= 0:
                self._bytes += os.write(self._fd, b'{"gone": %d}\n' % number)
                if not self._open and self._bytes > _MAX_BYTES:
                    os.ftruncate(self._fd, 0)
                    self._bytes = 0

    def close(self) -> None:
        """Remove the file, unless something is still open."""
        with self._lock:
            if self._fd >= 0 and self._owner == runtime_id():
                os.close(self._fd)
                if not self._open:
                    (self._folder / self._owner).unlink(missing_ok=True)
            self._fd = -1


def left_behind(folder: Path) -> list[tuple[Path, list[dict[str, Any]]]]:
    """The calls that processes have left open which have exited since. Whoever has dealt with them removes the file."""
    paths = list(folder.iterdir()) if folder.is_dir() else []
    return [(path, _unended(path)) for path in paths if has_exited(path.name)]


def _unended(path: Path) -> list[dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for line in path.read_bytes().splitlines():
        with contextlib.suppress(ValueError, KeyError):  # cut off when its process was killed
            about = json.loads(line)
            if "gone" in about:
                del found[about["gone"]]
            elif "returned" in about:
                found[about.pop("returned")].update(about)
            else:
                found[about["number"]] = about
    return list(found.values())

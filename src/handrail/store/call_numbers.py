"""The numbers of calls: per state folder, rising, and never used twice."""

from __future__ import annotations

import fcntl
import os
import struct
import threading
from pathlib import Path

from ..errors import StoreError

_NUMBER = struct.Struct("<Q")


class CallNumbers:
    """A file with the last number, locked for the time of a read and a write: a few microseconds per call."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._fd = -1
        self._process = 0

    def next(self) -> int:
        with self._lock:
            try:
                fd = self._opened()
                fcntl.flock(fd, fcntl.LOCK_EX)
                try:
                    content = os.pread(fd, _NUMBER.size, 0)
                    number = (_NUMBER.unpack(content)[0] if len(content) == _NUMBER.size else 0) + 1
                    os.pwrite(fd, _NUMBER.pack(number), 0)
                finally:
                    fcntl.flock(fd, fcntl.LOCK_UN)
            except OSError as error:
                raise StoreError(
                    f"{self._path} cannot be used: {error.strerror}; see that its folder can be written"
                ) from None
        return int(number)

    def close(self) -> None:
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
            self._fd = -1

    def _opened(self) -> int:
        # Opened anew after a fork: a lock belongs to whoever opened the file, and would be shared.
        if self._fd < 0 or self._process != os.getpid():
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._process = os.getpid()
        return self._fd

"""The folder of a background process: its status and its log.

The status is one file that is right at any moment and on a full disk. What is known at the start is JSON in a fixed number of
bytes, and is not written again. How the process ended follows in space that was reserved at the start: a reader in between finds
no valid JSON there, and takes the process for running.

The log is one or two files, `log.<offset of the first byte>`, addressed by a running offset. When the second is full the first is
removed, so that an endless writer keeps its latest output on a bounded disk. A full disk costs the bytes that came
meanwhile, never the process.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import NamedTuple

from .wire import Packet, write_all

SEGMENT_BYTES = 16 << 20
_START_BYTES, _END_BYTES = 8192, 128
_STATUS = "status"


def create_status(folder: str) -> int:
    """Create the file, with all the space it will need. Raises OSError on a full disk, before anything is started."""
    fd = os.open(os.path.join(folder, _STATUS), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        write_all(fd, b" " * (_START_BYTES + _END_BYTES))
    except OSError:
        os.close(fd)
        raise
    return fd


def write_start(fd: int, known: Packet) -> None:
    os.pwrite(fd, json.dumps(known).encode()[:_START_BYTES], 0)


def write_end(fd: int, code: int) -> None:
    content = json.dumps({"code": code, "ended_at": time.time()}).encode()
    os.pwrite(fd, content, _START_BYTES)


def read_status(folder: str) -> Packet:
    """Raises FileNotFoundError if there is no status yet, or no longer."""
    with open(os.path.join(folder, _STATUS), "rb") as file:
        content = file.read()
    try:
        status: Packet = json.loads(content[:_START_BYTES])
    except ValueError:
        raise FileNotFoundError(2, "it has no status") from None
    with contextlib.suppress(ValueError):  # it has not ended
        status.update(json.loads(content[_START_BYTES:]))
    return status


def has_status(folder: str) -> bool:
    return os.path.exists(os.path.join(folder, _STATUS))


class LogPiece(NamedTuple):
    """Bytes from `offset` on; `offset` is later than requested if the log no longer has the rest. `end` is the log's end."""

    offset: int
    data: bytes
    end: int


class LogWriter:
    def __init__(self, folder: str, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._file = -1
        self._begins: list[int] = []
        self.total = 0  # bytes received, written or not

    def write(self, data: bytes) -> None:
        begin, self.total = self.total, self.total + len(data)
        try:
            if self._file < 0 or begin - self._begins[-1] >= self._segment_bytes:
                self._next_segment(begin)
            view = memoryview(data)
            while view:
                view = view[os.write(self._file, view) :]
        except OSError:
            self.close()  # output that comes when there is space again starts a new file

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _next_segment(self, begin: int) -> None:
        self.close()
        while len(self._begins) > 1:
            os.unlink(_name(self._folder, self._begins.pop(0)))
        self._file = os.open(_name(self._folder, begin), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._begins.append(begin)


def read_log(folder: str, offset: int, max_bytes: int) -> LogPiece:
    segments: list[tuple[int, int]] = []
    for name in os.listdir(folder):
        prefix, _, number = name.partition(".")
        if prefix == "log" and number.isdigit():
            with contextlib.suppress(FileNotFoundError):  # it was the oldest, and has just been removed
                segments.append((int(number), os.stat(os.path.join(folder, name)).st_size))
    segments.sort()
    end = max((begin + size for begin, size in segments), default=0)
    for begin, size in segments:
        if offset < begin + size:
            at = max(begin, offset)
            return LogPiece(at, _read(_name(folder, begin), at - begin, max_bytes), end)
    return LogPiece(end, b"", end)


def remove_folder(folder: str) -> None:
    """Remove a process's folder with its files; it has no subfolders."""
    for _ in range(
        3
    ):  # another process may be removing it too, and an ending job supervisor may have written once more
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):
                os.unlink(os.path.join(folder, name))
            os.rmdir(folder)
            return


def _read(path: str, offset: int, max_bytes: int) -> bytes:
    try:
        with open(path, "rb") as file:
            return os.pread(file.fileno(), max_bytes, offset)
    except FileNotFoundError:
        return b""


def _name(folder: str, begin: int) -> str:
    return os.path.join(folder, f"log.{begin}")

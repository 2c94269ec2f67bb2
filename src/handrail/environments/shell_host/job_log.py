"""The log of a background process: files of bounded size that a reader addresses by a running offset.

A log is one or two files, `log.<offset of the first byte>`. When the second is full the first is removed, so that an endless
writer keeps its latest output on a bounded disk. A disk that is full costs the bytes that came meanwhile, never the process.
"""

from __future__ import annotations

import contextlib
import os
from typing import NamedTuple

SEGMENT_BYTES = 16 << 20


class LogPiece(NamedTuple):
    """Bytes from `offset` on; `offset` is later than was asked for when what was there is gone. `end` is where the log ends."""

    offset: int
    data: bytes
    end: int


class LogWriter:
    def __init__(self, folder: str, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._file = -1
        self._begins: list[int] = []
        self.total = 0  # what has come, written or not

    def write(self, data: bytes) -> None:
        begin, self.total = self.total, self.total + len(data)
        try:
            if self._file < 0 or begin - self._begins[-1] >= self._segment_bytes:
                self._next_segment(begin)
            view = memoryview(data)
            while view:
                view = view[os.write(self._file, view) :]
        except OSError:
            self.close()  # what comes when there is room again begins a file of its own

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
            with contextlib.suppress(FileNotFoundError):  # it was the oldest, and has just made room
                segments.append((int(number), os.stat(os.path.join(folder, name)).st_size))
    segments.sort()
    end = max((begin + size for begin, size in segments), default=0)
    for begin, size in segments:
        if offset < begin + size:
            at = max(begin, offset)
            return LogPiece(at, _read(_name(folder, begin), at - begin, max_bytes), end)
    return LogPiece(end, b"", end)


def remove_folder(folder: str) -> None:
    """A process's folder with all that is in it. It has no folders of its own."""
    for _ in range(3):  # somebody else may be removing it too, and a minder that ends may have written once more
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

"""Notice when something else opens a terminal or writes to it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterator

_IN_MODIFY, _IN_OPEN = 0x2, 0x20
_HEAD = struct.Struct("iIII")  # of a report: watch, what happened, cookie, length of the name that follows


class TtyWatch:
    """A context manager. `number` is the terminal's file; where it cannot be watched, nothing is ever reported.

    `apart`: one's own writing goes by `/dev/tty`, which is not watched, so that every report is about somebody else.
    """

    def __init__(self, number: int, *, apart: bool) -> None:
        self._terminal, self._apart = number, apart
        self._events = -1
        self._is_touched = False

    def __enter__(self) -> TtyWatch:
        try:
            path = device(self._terminal)
            libc = ctypes.CDLL(None, use_errno=True)
            self._events = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
            if self._events >= 0 and libc.inotify_add_watch(self._events, os.fsencode(path), _IN_MODIFY | _IN_OPEN) < 0:
                self.close()
        except (OSError, AttributeError):  # no terminal, or not Linux
            self.close()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._events >= 0:
            os.close(self._events)
        self._events = -1

    @property
    def files(self) -> list[int]:
        """What becomes readable when something is reported; for `select`."""
        return [self._events] if self._events >= 0 else []

    @contextlib.contextmanager
    def own_write(self) -> Iterator[None]:
        """Around each writing of one's own, which does not count."""
        self._note(self._reports())
        yield
        reports = self._reports()
        # Ours are one report: the kernel joins equal ones that follow each other, and so also somebody else's with ours.
        self._note(reports[1:] if reports[:1] == [_IN_MODIFY] and not self._apart else reports)

    def was_touched(self) -> bool:
        """Whether something else opened the terminal or wrote to it since `reset`."""
        self._note(self._reports())
        return self._is_touched

    def reset(self) -> None:
        self._reports()
        self._is_touched = False

    def _note(self, reports: list[int]) -> None:
        self._is_touched |= bool(reports)

    def _reports(self) -> list[int]:
        found: list[int] = []
        data = b""
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._events, 65_536) if self._events >= 0 else b""
        while data:
            _, mask, _, length = _HEAD.unpack_from(data)
            found.append(mask)
            data = data[_HEAD.size + length :]
        return found


def device(number: int) -> str:
    """The terminal's own device: `/dev/tty` is another name, and what others do under the first is not reported for it."""
    path = os.ttyname(number)
    if path != "/dev/tty":
        return path
    with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
        code = int(file.read().rpartition(")")[2].split()[4])
    major, minor = code >> 8 & 0xFFF, code & 0xFF | code >> 12 & 0xFFF00
    if not 136 <= major <= 143:  # not a pseudo terminal
        raise OSError(f"device {major}:{minor} is not known")
    return f"/dev/pts/{minor + (major - 136) * 256}"

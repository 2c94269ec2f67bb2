"""Notice when something else writes to the terminal while a question stands there.

Whatever runs as the same user may open the terminal and paint over the question. The kernel reports each open and write of a
device to whoever watches it (inotify), so a question that may have been painted over is drawn again before its answer counts.
"""

from __future__ import annotations

import ctypes
import os

_IN_MODIFY, _IN_OPEN = 0x2, 0x20


class TtyWatch:
    """A context manager. `number` is the terminal's file; where it cannot be watched, nothing is ever reported."""

    def __init__(self, number: int) -> None:
        self._terminal = number
        self._events = -1

    def __enter__(self) -> TtyWatch:
        try:
            path = _device(self._terminal)
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

    def was_touched(self) -> bool:
        """Whether anything was written since the last call, by this process too: call it after each writing of one's own."""
        try:
            return bool(self._events >= 0 and os.read(self._events, 65_536))
        except BlockingIOError:
            return False


def _device(number: int) -> str:
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

"""The page that a shell's client and the effect watcher share: which call runs, and which call has changed something.

Both are written and read without a message, so that a call that changes nothing costs nothing.
"""

from __future__ import annotations

import mmap
import os
import struct

from . import wire

_NUMBER = struct.Struct("<Q")
_CURRENT, _CHANGED = 0, 8
_BYTES = 4096


def create() -> int:
    """A descriptor to be passed on."""
    fd = wire.memory_file("call")
    os.ftruncate(fd, _BYTES)
    return fd


class CallPage:
    def __init__(self, fd: int) -> None:
        self._memory = mmap.mmap(fd, _BYTES)

    @property
    def current(self) -> int:
        """The call whose command runs, or ran last."""
        return int(_NUMBER.unpack_from(self._memory, _CURRENT)[0])

    @current.setter
    def current(self, call: int) -> None:
        _NUMBER.pack_into(self._memory, _CURRENT, call)

    @property
    def changed(self) -> int:
        """The last call that has entries in the journal."""
        return int(_NUMBER.unpack_from(self._memory, _CHANGED)[0])

    @changed.setter
    def changed(self, call: int) -> None:
        _NUMBER.pack_into(self._memory, _CHANGED, call)

    def close(self) -> None:
        self._memory.close()

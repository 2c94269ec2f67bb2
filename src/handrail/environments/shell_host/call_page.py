"""The page that a shell's client and the effect watcher share: which call runs, and whether it has changed something.

Neither costs a message, so that a call that changes nothing costs next to nothing.
"""

from __future__ import annotations

import mmap
import os
import struct

from . import wire

_NUMBER = struct.Struct("<Q")
_CURRENT, _CHANGED = 0, 8
_BYTES = 4096


class ClientPage:
    """The client's end. It keeps one descriptor, and no mapping, which would have another."""

    def __init__(self) -> None:
        self.fd = wire.memory_file("call", bytes(_BYTES))

    def begin(self, call: int) -> None:
        """This call's command runs from here on."""
        os.pwrite(self.fd, _NUMBER.pack(call), _CURRENT)

    def has_changed(self, call: int) -> bool:
        """Whether something was written to the journal for the call since it began."""
        return os.pread(self.fd, _NUMBER.size, _CHANGED) == _NUMBER.pack(call)

    def close(self) -> None:
        os.close(self.fd)


class CallPage:
    """The watcher's end."""

    def __init__(self, fd: int) -> None:
        self._memory = mmap.mmap(fd, _BYTES)

    @property
    def current(self) -> int:
        """The call whose command runs, or ran last."""
        return int(_NUMBER.unpack_from(self._memory, _CURRENT)[0])

    def mark_changed(self, call: int) -> None:
        """The current call has entries in the journal."""
        _NUMBER.pack_into(self._memory, _CHANGED, call)

    def close(self) -> None:
        self._memory.close()

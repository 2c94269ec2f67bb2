"""The page that a shell's client and the effect watcher share: which call runs, and whether it has changed something.

Neither costs a message, so that a call that changes nothing costs next to nothing.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from typing import Callable  # noqa: UP035  Python 3.8 knows no other place

from . import wire

_CURRENT, _CHANGED, _TRIED = 0, 8, 16
_BYTES = 4096
_libc = ctypes.CDLL(None, use_errno=True)
_map, _unmap = _libc.mmap, _libc.munmap
_map.restype = ctypes.c_void_p
_map.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_unmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_FAILED = ctypes.c_void_p(-1).value


class ClientPage:
    """The client's end. It holds no descriptor, which `mmap.mmap` would: a client may have hundreds of shells."""

    def __init__(self) -> None:
        self._address = 0
        self._unmap_last: Callable[[], object] = lambda: None

    def renew(self) -> int:
        """A new page with the same content: a descriptor to be passed to a supervisor, and then closed."""
        fd = wire.memory_file("call", ctypes.string_at(self._address, _BYTES) if self._address else bytes(_BYTES))
        address = _map(None, _BYTES, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
        if address in (None, _FAILED):
            os.close(fd)
            raise OSError(ctypes.get_errno(), "no memory could be shared with the shell")
        self._unmap_last()
        # Not when the shell is closed: another thread may still be looking.
        self._address, self._unmap_last = address, weakref.finalize(self, _unmap, address, _BYTES)
        return fd

    def begin(self, call: int, *, is_tried: bool = False) -> None:
        """This call's command runs from here on. The connections of one that is tried wait for an answer."""
        ctypes.c_uint64.from_address(self._address + _TRIED).value = call if is_tried else 0
        ctypes.c_uint64.from_address(self._address + _CURRENT).value = call

    def has_changed(self, call: int) -> bool:
        """Whether something was written to the journal for the call since it began."""
        return ctypes.c_uint64.from_address(self._address + _CHANGED).value == call


class CallPage:
    """The watcher's end."""

    def __init__(self, fd: int) -> None:
        self._memory = mmap.mmap(fd, _BYTES)
        self._numbers = memoryview(self._memory).cast("Q")

    @property
    def current(self) -> int:
        """The call whose command runs, or ran last."""
        return self._numbers[_CURRENT // 8]

    def is_tried(self, call: int) -> bool:
        return bool(call) and self._numbers[_TRIED // 8] == call

    def mark_changed(self, call: int) -> None:
        """The current call has entries in the journal."""
        self._numbers[_CHANGED // 8] = call

    def close(self) -> None:
        self._numbers.release()
        self._memory.close()

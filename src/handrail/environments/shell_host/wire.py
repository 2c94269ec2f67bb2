"""Between the processes of one shell: packets with descriptors and a shared page on one machine, frames between two."""

from __future__ import annotations

import array
import contextlib
import ctypes
import json
import mmap
import os
import socket
import struct
import weakref
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple  # noqa: UP035  Python 3.8 knows no other place

Packet = Dict[str, Any]  # noqa: UP006  the same
Received = Tuple[Optional[Packet], List[int]]  # noqa: UP006, UP045  the same
PACKET_BYTES = 1 << 17
# Whoever has a pipe's descriptor may open its other end. In a container that can be another user than the one who made it.
PIPE_MODE, MEMORY_MODE = 0o666, 0o777  # the latter is what the kernel makes
_CREDENTIALS = struct.Struct("3i")  # pid, user, group
_ROOM = socket.CMSG_SPACE(8 * array.array("i").itemsize) + socket.CMSG_SPACE(_CREDENTIALS.size)  # for 8 descriptors
_CLOSE_ON_EXEC = int(socket.MSG_CMSG_CLOEXEC)  # to combine flags of their own type takes longer than the system call
FRAME = struct.Struct(">cII")  # kind, number of the request, bytes that follow
CURRENT, CHANGED, TRIED, ENDED = range(4)  # the numbers in a call page
CALL_PAGE = "handrail-call"
_BYTES = 4096
_libc = ctypes.CDLL(None, use_errno=True)
_map, _unmap = _libc.mmap, _libc.munmap
_map.restype = ctypes.c_void_p
_map.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_unmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_FAILED = ctypes.c_void_p(-1).value
_Numbers = ctypes.c_uint64 * 4


def packet_pair() -> tuple[socket.socket, socket.socket]:
    """Two ends that keep message boundaries, carry descriptors, and notice when the other is gone."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(sock: socket.socket, message: Packet, fds: Iterable[int] = (), flags: int = 0) -> None:
    passed = array.array("i", fds)
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, passed)] if passed else []
    sock.sendmsg([json.dumps(message).encode()], ancillary, flags)


def receive(sock: socket.socket, flags: int = 0) -> Received:
    """The next message and its descriptors; None at the end. Raises BlockingIOError if there is none yet. On a socket with
    SO_PASSCRED the message has its sender's pid, as this process knows it, as `sender`."""
    data, ancillary, _, _ = sock.recvmsg(PACKET_BYTES, _ROOM, int(flags) | _CLOSE_ON_EXEC)
    fds: list[int] = []
    sender = 0
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            passed = array.array("i")
            passed.frombytes(content[: len(content) - len(content) % passed.itemsize])
            fds += passed
        elif level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
            sender = _CREDENTIALS.unpack(content)[0]
    try:
        packet = json.loads(data) if data else None
        return ({**packet, "sender": sender} if packet is not None and sender else packet), fds
    except ValueError:
        for fd in fds:
            os.close(fd)
        raise


def memory_file(name: str, content: bytes = b"") -> int:
    fd = os.memfd_create(name)
    write_all(fd, content)
    return fd


def read_whole(fd: int) -> bytes:
    """The whole content of a regular file, wherever its offset is."""
    size, content = os.fstat(fd).st_size, b""
    while len(content) < size and (piece := os.pread(fd, size - len(content), len(content))):
        content += piece
    return content


def write_all(fd: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]


def keep_only(fds: Iterable[int]) -> None:
    """Close every descriptor except these: a forked child must not hold its parent's."""
    kept = set(fds)
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            with contextlib.suppress(OSError):  # it was the one of the listing itself
                os.close(int(name))


class ClientPage:
    """The page that a shell's client and the effect watcher share: which call runs, and whether it has changed something.
    Neither costs a message, so that a call that changes nothing costs next to nothing. This is the client's end. It holds no
    descriptor, which `mmap.mmap` would: a client may have hundreds of shells."""

    def __init__(self) -> None:
        self._address, self._numbers = 0, _Numbers()
        self._unmap_last: Callable[[], object] = lambda: None

    def renew(self) -> int:
        """A new page with the same content: a descriptor to be passed to a supervisor, and then closed."""
        fd = memory_file(CALL_PAGE, ctypes.string_at(self._address, _BYTES) if self._address else bytes(_BYTES))
        address = _map(None, _BYTES, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
        if address in (None, _FAILED):
            os.close(fd)
            raise OSError(ctypes.get_errno(), "no memory could be shared with the shell")
        self._address, self._numbers = address, _Numbers.from_address(address)
        # Not when the shell is closed: another thread may still be looking.
        unmap_last, self._unmap_last = self._unmap_last, weakref.finalize(self, _unmap, address, _BYTES)
        unmap_last()
        return fd

    def begin(self, call: int, *, is_tried: bool = False) -> None:
        """This call's command runs from here on. The connections of one that is tried wait for an answer."""
        numbers = self._numbers
        numbers[TRIED], numbers[ENDED] = call if is_tried else 0, 0
        numbers[CURRENT] = call

    def has_changed(self, call: int) -> bool:
        """Whether something was written to the journal for the call since it began."""
        return call != 0 and self._numbers[CHANGED] == call

    def has_ended(self, call: int) -> bool:
        """Whether the watcher has written already that the call is complete."""
        return call != 0 and self._numbers[ENDED] == call


class CallPage:
    """The watcher's end of it: the call whose command runs, or ran last; the last that has changed something; one that is
    tried; one that is complete. A call that is not recorded is 0. bash asks for `-N` of the page: whether its modification time
    is after its access time. If so, it says to the watcher that its command is over, and the client need not ask."""

    def __init__(self, fd: int) -> None:
        self._fd, self._memory = fd, mmap.mmap(fd, _BYTES)
        self.numbers = memoryview(self._memory).cast("Q")
        self.ask_for_end(False)

    def ask_for_end(self, is_wanted: bool) -> None:
        with contextlib.suppress(OSError):  # it is another user's: the client asks
            os.utime(self._fd, ns=(0, int(is_wanted)))

    def close(self) -> None:
        self.numbers.release()
        self._memory.close()
        os.close(self._fd)

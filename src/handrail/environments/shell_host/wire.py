"""Messages between the processes of one shell: packets with descriptors on one machine, frames between two."""

from __future__ import annotations

import array
import contextlib
import json
import os
import socket
import struct
from typing import Any, Dict, Iterable, List, Optional, Tuple  # noqa: UP035  Python 3.8 knows no other place

Packet = Dict[str, Any]  # noqa: UP006  the same
Received = Tuple[Optional[Packet], List[int]]  # noqa: UP006, UP045  the same

PACKET_BYTES = 1 << 17
# Whoever has a pipe's descriptor may open its other end. In a container that can be another user than the one who made it.
PIPE_MODE = 0o666
_MAX_DESCRIPTORS = 8
_CREDENTIALS = struct.Struct("3i")  # pid, user, group
FRAME = struct.Struct(">cII")  # kind, number of the request, bytes that follow


def packet_pair() -> tuple[socket.socket, socket.socket]:
    """Two ends that keep message boundaries, carry descriptors, and notice when the other is gone."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(sock: socket.socket, message: Packet, fds: Iterable[int] = (), flags: int = 0) -> None:
    passed = array.array("i", fds)
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, passed)] if passed else []
    sock.sendmsg([json.dumps(message).encode()], ancillary, flags)


def receive(sock: socket.socket, flags: int = 0) -> Received:
    """The next message and its descriptors; None at the end. Raises BlockingIOError if there is none yet.

    On a socket with SO_PASSCRED the message has its sender's pid, as this process knows it, as `sender`.
    """
    room = socket.CMSG_SPACE(_MAX_DESCRIPTORS * array.array("i").itemsize) + socket.CMSG_SPACE(_CREDENTIALS.size)
    data, ancillary, _, _ = sock.recvmsg(PACKET_BYTES, room, flags | socket.MSG_CMSG_CLOEXEC)
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
    """An anonymous file in memory."""
    fd = os.memfd_create(name)
    write_all(fd, content)
    return fd


def read_whole(fd: int) -> bytes:
    """The whole content of a regular file, wherever its offset is."""
    size = os.fstat(fd).st_size
    pieces = []
    offset = 0
    while offset < size:
        piece = os.pread(fd, size - offset, offset)
        if not piece:
            break
        pieces.append(piece)
        offset += len(piece)
    return b"".join(pieces)


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

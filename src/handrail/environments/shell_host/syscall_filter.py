"""The seccomp filter of a shell: system calls that change a file are reported to the effect watcher before they happen. Every
other call is let through by the kernel without running the filter. Calls that would go past it (io_uring, file handles, other
system call tables of the same machine, calls that are newer than this) fail with ENOSYS, as on a kernel without them."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import socket
import struct
import threading
from typing import NamedTuple, Tuple  # noqa: UP035  Python 3.8 knows no other place

from . import wire

_libc = ctypes.CDLL(None, use_errno=True)
_PR_SET_NO_NEW_PRIVS, _SET_MODE_FILTER = 38, 1
_NEW_LISTENER, _WAIT_KILLABLE = 8, 32
# With a name relative to the working directory: how `rm -r` and few others open what they are given. It is about to be deleted.
_FOLDER_FLAGS, _CWD = os.O_DIRECTORY | os.O_NOFOLLOW, 0xFFFFFF9C
WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_F_SETFL = 4
NOBODY = 0x7FFFFFFF  # a process that there never is: bash sends it a signal to say that a command is over

# By system call: its number on x86_64 and on aarch64, which lacks those that an `at` call replaces.
_TABLE = """
    open 2 -, creat 85 -, openat 257 56, openat2 437 437, unlink 87 -, unlinkat 263 35, rmdir 84 -, rename 82 -,
    renameat 264 38, renameat2 316 276, truncate 76 45, ftruncate 77 46, link 86 -, linkat 265 37, symlink 88 -,
    symlinkat 266 36, mkdir 83 -, mkdirat 258 34, mknod 133 -, mknodat 259 33, chmod 90 -, fchmod 91 52, fchmodat 268 53,
    fchmodat2 452 452, chown 92 -, fchown 93 55, lchown 94 -, fchownat 260 54, setxattr 188 5, lsetxattr 189 6,
    fsetxattr 190 7, setxattrat 463 463, removexattr 197 14, lremovexattr 198 15, fremovexattr 199 16,
    removexattrat 466 466, utime 132 -, utimes 235 -, futimesat 261 -, utimensat 280 88, fallocate 285 47, fcntl 72 25,
    bind 49 200, connect 42 203, sendto 44 206, sendmsg 46 211, sendmmsg 307 269, chroot 161 51, ptrace 101 117,
    process_vm_writev 311 271, pidfd_getfd 438 438, landlock_restrict_self 446 446, kill 62 129
"""
_NUMBERS = {
    name: (int(number), None if other == "-" else int(other))
    for name, number, other in (entry.split() for entry in _TABLE.split(","))
}
# io_uring_setup, io_uring_enter, io_uring_register, open_by_handle_at
_REFUSED = ((425, 426, 427, 304), (425, 426, 427, 265))
_SECCOMP = (317, 277)
_AUDIT_ARCHITECTURE = (0xC000003E, 0xC00000B7)
_MACHINES = ("x86_64", "aarch64")
_UNKNOWN = 467  # system calls from this one on are newer than this table, or of another one (x32)

_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x54, 0x06
_NOTIFY, _ALLOW, _FAIL = 0x7FC00000, 0x7FFF0000, 0x00050000 | errno.ENOSYS
_NO_FAMILY = 0x00050000 | errno.EAFNOSUPPORT
_NUMBER_OFFSET, _ARCHITECTURE_OFFSET = 0, 4


# Reported only where connections wait for an answer: programs send messages to each other all the time.
_MESSAGES = ("sendmsg", "sendmmsg")
# The only kinds of sockets that there are then, as each connection of others could not be checked: local ones, IPv4 and IPv6,
# netlink and cryptography; and not SCTP, which connects without `connect`.
_SOCKET, _FAMILIES, _SCTP = (41, 198), (1, 2, 10, 16, 38), 132
# Options of IPv4 and IPv6, by level, that lead packets over a host of the program's choice.
_SETSOCKOPT, ROUTES = (54, 208), ((0, 4), (41, 5), (41, 6), (41, 57))
# A process of its own that shares the descriptors could change them during a check. What clone3 does cannot be seen.
_CLONE, _CLONE3, _CLONE_FILES, _CLONE_THREAD = (56, 220), 435, 0x400, 0x10000
_watches_messages = False


def watch_messages() -> None:
    """Report those as well, in this process and what it forks from now on."""
    global _watches_messages
    _watches_messages = True


class FilterRefused(Exception):
    """The kernel takes no such filter; the message says why."""


def numbers() -> dict[str, int]:
    """The number of each watched system call on this machine. Raises FilterRefused on one that is not known."""
    column = _column()
    return {name: both[column] for name, both in _NUMBERS.items() if both[column] is not None}  # type: ignore[misc]


def program() -> bytes:
    column, known = _column(), numbers()
    for name in () if _watches_messages else _MESSAGES:
        del known[name]
    lines = [
        (_LOAD, 0, 0, _ARCHITECTURE_OFFSET),
        (_EQUAL, 1, 0, _AUDIT_ARCHITECTURE[column]),
        (_RETURN, 0, 0, _FAIL),
        (_LOAD, 0, 0, _NUMBER_OFFSET),
        (_AT_LEAST, 0, 1, _UNKNOWN),
        (_RETURN, 0, 0, _FAIL),
    ]

    def when(number: int, *then: tuple[int, int, int, int]) -> None:
        lines.append((_EQUAL, 0, len(then), number))
        lines.extend(then)

    answer = ((_RETURN, 0, 0, _NOTIFY), (_RETURN, 0, 0, _ALLOW))
    if "open" in known:
        when(known.pop("open"), (_LOAD, 0, 0, _argument(1)), (_ANY_BIT, 0, 1, WRITE_FLAGS), *answer)
    is_here = ((_LOAD, 0, 0, _argument(0)), (_EQUAL, 0, 1, _CWD))
    is_folder = ((_AND, 0, 0, _FOLDER_FLAGS), (_EQUAL, 0, 3, _FOLDER_FLAGS), *is_here)
    is_written = ((_LOAD, 0, 0, _argument(2)), (_ANY_BIT, len(is_folder), 0, WRITE_FLAGS))
    when(known.pop("openat"), *is_written, *is_folder, *answer)
    # A file that was opened to append: its size alone is saved, so that taking the flag away is a change.
    is_setfl = ((_LOAD, 0, 0, _argument(1)), (_EQUAL, 0, 3, _F_SETFL), (_LOAD, 0, 0, _argument(2)))
    when(known.pop("fcntl"), *is_setfl, (_ANY_BIT, 1, 0, os.O_APPEND), *answer)
    when(known.pop("fallocate"), (_LOAD, 0, 0, _argument(1)), (_EQUAL, 1, 0, 0), *answer)
    halves = (_LOAD, 0, 0, _argument(4)), (_EQUAL, 0, 2, 0), (_LOAD, 0, 0, _argument(4) + 4), (_EQUAL, 1, 0, 0)
    when(known.pop("sendto"), *halves, *answer)
    when(known.pop("kill"), (_LOAD, 0, 0, _argument(0)), (_EQUAL, 0, 1, NOBODY), *answer)
    if _watches_messages:
        is_known = [(_EQUAL, len(_FAMILIES) - index, 0, family) for index, family in enumerate(_FAMILIES)]
        is_sctp = ((_LOAD, 0, 0, _argument(2)), (_EQUAL, 0, 1, _SCTP), (_RETURN, 0, 0, _NO_FAMILY))
        refused = (_RETURN, 0, 0, _NO_FAMILY)
        when(_SOCKET[column], (_LOAD, 0, 0, _argument(0)), *is_known, refused, *is_sctp, (_RETURN, 0, 0, _ALLOW))
        routes: list[tuple[int, int, int, int]] = []
        for level, option in ROUTES:
            routes += ((_LOAD, 0, 0, _argument(1)), (_EQUAL, 0, 3, level), (_LOAD, 0, 0, _argument(2)))
            routes += ((_EQUAL, 0, 1, option), refused)
        when(_SETSOCKOPT[column], *routes, (_RETURN, 0, 0, _ALLOW))
        shares = ((_AND, 0, 0, _CLONE_FILES | _CLONE_THREAD), (_EQUAL, 0, 1, _CLONE_FILES), (_RETURN, 0, 0, _FAIL))
        when(_CLONE[column], (_LOAD, 0, 0, _argument(0)), *shares, (_RETURN, 0, 0, _ALLOW))
        when(_CLONE3, (_RETURN, 0, 0, _FAIL))
    for number in known.values():
        when(number, (_RETURN, 0, 0, _NOTIFY))
    for number in _REFUSED[column]:
        when(number, (_RETURN, 0, 0, _FAIL))
    lines.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *line) for line in lines)


class Watch(NamedTuple):
    """Where a process that is to be watched reports: the effect watcher's socket, and what goes with the filter's listener."""

    socket: socket.socket
    packet: wire.Packet
    fds: Tuple[int, ...] = ()  # noqa: UP006  Python 3.8 knows no other

    def tell_left(self, call: int) -> None:
        """What is below this process now was left by the call. Returns when the effect watcher has looked: later there may be
        processes of the next call."""
        has_looked, theirs = os.pipe()
        try:
            with contextlib.suppress(OSError):  # it was killed: the fork server ends this process
                wire.send(self.socket, {"op": "left", "shell": self.packet["shell"], "call": call}, [theirs])
        finally:
            os.close(theirs)
        with open(has_looked, "rb", 0) as file:
            file.read(1)


def install_and_send(watch: Watch) -> None:
    """Put this process, and all that it starts, under the filter, and send the listening descriptor. A filter holds for the
    thread that installs it. Another thread, which ends at exec, can still send: so no system call has to be exempted, and the
    receiver need not take the descriptor out of this process, which some containers forbid."""
    listener: list[int] = []
    is_installed = threading.Event()

    def send() -> None:
        is_installed.wait()
        if listener:
            wire.send(watch.socket, watch.packet, [*listener, *watch.fds])

    sender = threading.Thread(target=send)
    sender.start()
    try:
        listener.append(_install())
    finally:
        is_installed.set()
        sender.join()
    os.close(listener[0])


def _install() -> int:
    text = program()
    buffer = ctypes.create_string_buffer(text, len(text))
    # struct sock_fprog: a count and a pointer.
    filter_program = struct.pack("HxxxxxxQ", len(text) // 8, ctypes.addressof(buffer))
    for flags in (_NEW_LISTENER | _WAIT_KILLABLE, _NEW_LISTENER):
        fd = _libc.syscall(_SECCOMP[_column()], _SET_MODE_FILTER, flags, filter_program)
        if fd < 0 and ctypes.get_errno() in (errno.EACCES, errno.EPERM):
            # Whoever is not root has to give up gaining rights by a program, as sudo does.
            _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            fd = _libc.syscall(_SECCOMP[_column()], _SET_MODE_FILTER, flags, filter_program)
        if fd >= 0:
            return int(fd)
    code = ctypes.get_errno()
    raise FilterRefused("another watcher is there already" if code == errno.EBUSY else os.strerror(code))


def _column() -> int:
    machine = os.uname().machine
    if machine not in _MACHINES or struct.calcsize("P") != 8:
        raise FilterRefused(f"its system calls are not known on {machine}")
    return _MACHINES.index(machine)


def _argument(index: int) -> int:
    """Where the low half of an argument is in what a filter sees."""
    return 16 + 8 * index

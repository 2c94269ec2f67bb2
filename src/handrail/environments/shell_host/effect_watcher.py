"""The effect watcher: is told of every system call that changes a file before it happens, and keeps what was there.

It runs in a process above the shells (effect_server.py), because the kernel lets only such a one and root look into their memory
everywhere. A call waits in the kernel until it is answered. If the watcher dies, the kernel fails every further change with
ENOSYS: nothing can happen that is not in the journal.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import select
import socket
import stat
import struct
from functools import partial
from typing import Any, Callable, Iterable  # noqa: UP035  Python 3.8 knows no other place

from . import syscall_filter
from .deletion_limit import Excess
from .held_calls import Ask, HeldCall, HeldNotices, Hold, answer_notice, nobody
from .journal import CallJournal, lstat
from .journal_log import JournalFailed
from .syscall_names import Elsewhere, Names, Unreadable

_RECEIVE, _SET_FLAGS = 0xC0502100, 0x40082104
_SYNC_WAKE_UP = 1
_NOTICE = struct.Struct("<QIIiIQ6Q")  # struct seccomp_notif
_ZEROS = bytes(_NOTICE.size)
_BATCH = 64
_CWD = 0xFFFFFF9C
_O_TMPFILE = 0x400000
_RENAME_NOREPLACE, _RENAME_EXCHANGE = 1, 2
_AT_SYMLINK_NOFOLLOW, _AT_EMPTY_PATH = 0x100, 0x1000
_MAX_ADDRESS = 128
_IS_ROOT = os.geteuid() == 0
_VIRTUAL = re.compile(r"/(?:proc|sys|dev(?!/shm/))/").match

CallOf = Callable[[int], CallJournal]
"""The journal of the call that a process belongs to."""


class EffectWatcher:
    """Answers the notices of one listener. `is_kept_out` says of a path that nothing may change there; below `private` ones
    only the processes themselves see what they do. `ask` is given what a system call waits for, and the function that takes the
    answer, now or later."""

    def __init__(
        self,
        listener: int,
        call_of: CallOf,
        is_kept_out: Callable[[str], bool],
        *,
        kept_out_error: int = errno.EACCES,
        private: Iterable[str] = (),
        ask: Ask = nobody,
    ) -> None:
        self.listener, self._kept_out_error, self._private = listener, kept_out_error, tuple(private)
        self._call_of, self._is_kept_out = call_of, is_kept_out
        self._held = HeldNotices(listener, ask)
        self._names = Names()
        self._buffer = bytearray(_ZEROS)
        self._handlers: dict[int, Callable[..., int | None]] = {
            number: _simple(self, name) or getattr(self, f"_on_{name}")
            for name, number in syscall_filter.numbers().items()
        }
        self._poll = select.poll()
        self._poll.register(listener, select.POLLIN)
        with contextlib.suppress(OSError):  # a kernel before 6.6
            fcntl.ioctl(listener, _SET_FLAGS, _SYNC_WAKE_UP)

    def serve(self) -> bool:
        """Answer what waits. False when no process is left under the filter."""
        for _ in range(_BATCH):
            ready = self._poll.poll(0)
            if not ready:
                return True
            if ready[0][1] & (select.POLLHUP | select.POLLERR | select.POLLNVAL):
                return False
            self._answer_next()
        return True

    def close(self) -> None:
        os.close(self.listener)

    def _answer_next(self) -> None:
        self._buffer[:] = _ZEROS
        try:
            fcntl.ioctl(self.listener, _RECEIVE, self._buffer, True)
        except OSError:
            return  # the process was killed meanwhile
        notice, pid, _, number, _, _, *arguments = _NOTICE.unpack(self._buffer)
        try:
            error = self._error_of(pid, number, arguments)
        except Hold as hold:
            self._held.hold(notice, pid, self._call_of(pid).call, hold)
            return
        except JournalFailed as failure:
            error = failure.errno
        except Exception:  # noqa: BLE001  a fault here must neither let a change through nor end all shells
            error = errno.EIO
        answer_notice(self.listener, notice, error)

    def _error_of(self, pid: int, number: int, arguments: list[int]) -> int | None:
        try:
            return self._handlers[number](pid, *arguments)
        except Unreadable:
            self._call_of(pid).unseen("", f"a process hides its memory (system call {number})")
            return None
        except Elsewhere as elsewhere:
            # Our own mounts of this kind are empty, and gone with the shell.
            if not elsewhere.path.startswith(self._private):
                self._call_of(pid).unseen(elsewhere.path, "a process changes it that has mounts of its own")
            return None
        except (OSError, KeyError, ValueError):
            return None  # a bad name or descriptor: the system call fails by itself

    # Opening

    def _opened(self, pid: int, folder: int, name: int, flags: int, *_: int) -> int | None:
        path = self._names.path(pid, folder, name)
        if path is None or (flags & os.O_EXCL and flags & os.O_CREAT and self._call_of(pid).is_new(path)):
            return None  # nothing to look at: it is made in a folder that is new itself, or it fails
        found = lstat(path)
        if found is not None and stat.S_ISLNK(found.st_mode) and not flags & os.O_NOFOLLOW:
            followed, found = self._names.target(path)
            if followed is None:
                return None
            path = followed
        if _VIRTUAL(path):
            return self._opened_virtual(pid, path)
        if self._is_kept_out(path):
            return self._kept_out_error
        if found is None:
            if flags & os.O_CREAT:
                self._call_of(pid).create(path)
        elif stat.S_ISREG(found.st_mode):
            if not (_IS_ROOT or os.access(path, os.W_OK)):
                return None  # it fails by itself
            is_append = flags & os.O_APPEND and flags & os.O_ACCMODE == os.O_WRONLY and not flags & os.O_TRUNC
            self._call_of(pid).change(path, found, only_grows=bool(is_append))
        return None

    def _opened_virtual(self, pid: int, path: str) -> int | None:
        """The memory of another process: what is written there makes that one act."""
        words = path.split("/")
        if words[-1] != "mem" or words[1] != "proc":
            return None
        # As _of_process of syscall_names spells it: /proc/PID/mem if it is its own, else /proc/PID/root/proc/OTHER/mem.
        return self._other_process(pid, int(words[5])) if words[3] == "root" else None

    def _on_creat(self, pid: int, name: int, *_: int) -> int | None:
        return self._opened(pid, _CWD, name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)

    def _on_openat2(self, pid: int, folder: int, name: int, how: int, *_: int) -> int | None:
        flags = struct.unpack("Q", self._names.memory.read(pid, how, 8))[0]
        return self._opened(pid, folder, name, flags) if flags & syscall_filter.WRITE_FLAGS else None

    # Names that go, come and move

    def _removed(self, pid: int, folder: int, name: int, *_: int) -> int | None:
        path = self._names.path(pid, folder, name)
        found = lstat(path) if path is not None else None
        if path is None or found is None:
            return None
        if self._is_kept_out(path):
            return self._kept_out_error
        if not stat.S_ISREG(found.st_mode):
            self._names.forget()
        call = self._call_of(pid)
        if call.limit is not None and not call.is_new(path):
            self._pause(call, path, call.limit.add(path, found, pid))
        call.remove(path, found)
        return None

    def _pause(self, call: CallJournal, path: str, excess: Excess | None) -> None:
        """Let a deletion wait for an answer if it is one too many."""
        if excess is None:
            return

        def go_on() -> None:
            assert call.limit is not None
            call.limit.allow(excess)
            found = lstat(path)  # it may be another file by now
            if found is not None:
                call.remove(path, found)

        raise Hold(HeldCall(excess.kind, "unlink", excess.target, detail=excess.detail), go_on, errno.EPERM)

    def _renamed(self, pid: int, source: tuple[int, int], target: tuple[int, int], flags: int = 0) -> int | None:
        path, to = self._names.path(pid, *source), self._names.path(pid, *target)
        found = lstat(path) if path is not None else None
        if path is None or to is None or found is None or path == to:
            return None
        if self._is_kept_out(path) or self._is_kept_out(to):
            return self._kept_out_error
        there = lstat(to)
        if there is not None and (flags & _RENAME_NOREPLACE or os.path.samestat(found, there)):
            return None  # it fails, or does nothing
        if not stat.S_ISREG(found.st_mode) or (there is not None and not stat.S_ISREG(there.st_mode)):
            self._names.forget()
        self._call_of(pid).rename(path, found, to, there, exchange=bool(flags & _RENAME_EXCHANGE))
        return None

    def _on_rename(self, pid: int, name: int, to: int, *_: int) -> int | None:
        return self._renamed(pid, (_CWD, name), (_CWD, to))

    def _on_renameat(self, pid: int, folder: int, name: int, to_folder: int, to: int, *_: int) -> int | None:
        return self._renamed(pid, (folder, name), (to_folder, to))

    def _on_renameat2(self, pid: int, *arguments: int) -> int | None:
        folder, name, to_folder, to, flags = arguments[:5]
        return self._renamed(pid, (folder, name), (to_folder, to), flags)

    def _made(self, pid: int, folder: int, name: int, *_: int, is_folder: bool = False, link_to: int = 0) -> int | None:
        path = self._names.path(pid, folder, name)
        if path is None or lstat(path) is not None:
            return None
        if self._is_kept_out(path):
            return self._kept_out_error
        self._call_of(pid).create(path, is_folder=is_folder, link_to=link_to)
        return None

    def _made_folder(self, pid: int, folder: int, name: int, *_: int) -> int | None:
        return self._made(pid, folder, name, is_folder=True)

    def _on_symlink(self, pid: int, _target: int, name: int, *_: int) -> int | None:
        self._names.forget()
        return self._made(pid, _CWD, name)

    def _on_symlinkat(self, pid: int, _target: int, folder: int, name: int, *_: int) -> int | None:
        self._names.forget()
        return self._made(pid, folder, name)

    def _on_link(self, pid: int, name: int, to: int, *_: int) -> int | None:
        return self._on_linkat(pid, _CWD, name, _CWD, to, 0)

    def _on_linkat(self, pid: int, folder: int, name: int, to_folder: int, to: int, flags: int, *_: int) -> int | None:
        raw = self._names.memory.name(pid, name)
        if flags & _AT_EMPTY_PATH or raw.startswith((b"/proc/", b"/dev/fd/")):
            return self._made(pid, to_folder, to)  # a file without a name (O_TMPFILE) gets one
        path = self._names.path(pid, folder, name)
        found = lstat(path) if path is not None else None
        if path is None or found is None:
            return None
        if self._is_kept_out(path):  # another name for what is kept would make it changeable
            return self._kept_out_error
        return self._made(pid, to_folder, to, link_to=found.st_ino)

    def _on_bind(self, pid: int, _fd: int, address: int, size: int, *_: int) -> int | None:
        """Binding a local socket to a path makes a file."""
        raw = self._names.memory.read(pid, address, min(size, _MAX_ADDRESS))
        if len(raw) < 3 or struct.unpack_from("H", raw)[0] != socket.AF_UNIX or raw[2] == 0:
            return None
        name = os.fsdecode(raw[2:].split(b"\0")[0])
        path = os.path.join(self._names.folder(pid, _CWD), name)
        path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        if not path.startswith("/proc/") and lstat(path) is None:
            if self._is_kept_out(path):
                return self._kept_out_error
            self._call_of(pid).create(path)
        return None

    # Content and attributes

    def _cut(self, pid: int, path: str | None) -> int | None:
        found = lstat(path) if path is not None else None
        if path is None or found is None or not stat.S_ISREG(found.st_mode) or _VIRTUAL(path):
            return None
        if self._is_kept_out(path):
            return self._kept_out_error
        self._call_of(pid).change(path, found)
        return None

    def _on_truncate(self, pid: int, name: int, *_: int) -> int | None:
        path = self._names.path(pid, _CWD, name)
        return self._cut(pid, self._names.target(path)[0] if path is not None else None)

    def _on_ftruncate(self, pid: int, fd: int, *_: int) -> int | None:
        return self._cut(pid, self._names.of_descriptor(pid, fd))

    _on_fallocate = _on_ftruncate

    def _on_fcntl(self, pid: int, fd: int, *_: int) -> int | None:
        path = self._names.of_descriptor(pid, fd)
        return self._cut(pid, path) if path is not None and self._call_of(pid).grows(path) else None

    def _marked(self, pid: int, path: str | None, *, follow: bool = True) -> int | None:
        if path is None:
            return None
        target, found = self._names.target(path) if follow else (path, lstat(path))
        if target is None or found is None or _VIRTUAL(target):
            return None
        if self._is_kept_out(target):
            return self._kept_out_error
        self._call_of(pid).attributes(target, found)
        return None

    def _marked_by_name(self, pid: int, folder: int, name: int, *_: int) -> int | None:
        return self._marked(pid, self._names.path(pid, folder, name))

    def _marked_itself(self, pid: int, folder: int, name: int, *_: int) -> int | None:
        return self._marked(pid, self._names.path(pid, folder, name), follow=False)

    def _on_fchmod(self, pid: int, fd: int, *_: int) -> int | None:
        return self._marked(pid, self._names.of_descriptor(pid, fd))

    _on_fchown = _on_fsetxattr = _on_fremovexattr = _on_fchmod

    def _marked_by_flags(self, pid: int, folder: int, name: int, flags: int) -> int | None:
        return self._marked(pid, self._names.path(pid, folder, name), follow=not flags & _AT_SYMLINK_NOFOLLOW)

    def _on_fchmodat2(self, pid: int, *arguments: int) -> int | None:
        return self._marked_by_flags(pid, arguments[0], arguments[1], arguments[3])

    def _on_setxattrat(self, pid: int, *arguments: int) -> int | None:
        return self._marked_by_flags(pid, *arguments[:3])

    _on_removexattrat = _on_setxattrat

    def _on_fchownat(self, pid: int, *arguments: int) -> int | None:
        return self._marked_by_flags(pid, arguments[0], arguments[1], arguments[4])

    def _on_utimensat(self, pid: int, folder: int, name: int, _times: int, flags: int, *_: int) -> int | None:
        path = self._names.path(pid, folder, name) if name else self._names.of_descriptor(pid, folder)
        return self._marked(pid, path, follow=not flags & _AT_SYMLINK_NOFOLLOW)

    # Other hosts, and other processes

    def _contacted(self, pid: int, address: int, size: int) -> None:
        raw = self._names.memory.read(pid, address, min(size, _MAX_ADDRESS))
        family = struct.unpack_from("H", raw)[0]
        if family in (socket.AF_INET, socket.AF_INET6):
            port = struct.unpack_from(">H", raw, 2)[0]
            host = raw[4:8] if family == socket.AF_INET else raw[8:24]
            text = socket.inet_ntop(family, host)
            name, call = f"[{text}]:{port}" if family == socket.AF_INET6 else f"{text}:{port}", self._call_of(pid)
            if call.is_tried:
                raise Hold(HeldCall("connect", "connect", name), lambda: call.host(name), errno.EACCES)
            call.host(name)
        elif family == socket.AF_UNIX and self._call_of(pid).is_tried:
            # What a service does is none of the call's own changes.
            path = os.path.join(self._names.folder(pid, _CWD), os.fsdecode(raw[2:].split(b"\0")[0]))
            if raw[2:3] != b"\0" and "/nscd/" not in path and lstat(path) is not None:
                raise Hold(HeldCall("connect", "connect", path), lambda: None, errno.EACCES)

    def _on_connect(self, pid: int, _fd: int, address: int, size: int, *_: int) -> None:
        self._contacted(pid, address, size)

    def _on_sendto(self, pid: int, *arguments: int) -> None:
        self._contacted(pid, arguments[4], arguments[5])

    def _other_process(self, pid: int, other: int) -> int | None:
        """A process may act on another one of its own call: a debugger. On others it would act in their name."""
        here = self._names.process(pid, other)
        return None if not here or self._call_of(here) is self._call_of(pid) else errno.EPERM

    def _on_ptrace(self, pid: int, request: int, other: int, *_: int) -> int | None:
        return self._other_process(pid, other) if other and request else None

    def _on_process_vm_writev(self, pid: int, other: int, *_: int) -> int | None:
        return self._other_process(pid, other)

    def _on_pidfd_getfd(self, *_: Any) -> int | None:
        return errno.EPERM

    def _on_chroot(self, *_: int) -> None:
        self._names.forget()


# What a system call does to the one name in its arguments. Without `at` it is relative to the working directory.
_SIMPLE: dict[Callable[..., int | None], str] = {
    EffectWatcher._opened: "open openat",
    EffectWatcher._removed: "unlink unlinkat rmdir",
    EffectWatcher._made: "mknod mknodat",
    EffectWatcher._made_folder: "mkdir mkdirat",
    EffectWatcher._marked_by_name: "chmod chown setxattr removexattr utime utimes fchmodat futimesat",
    EffectWatcher._marked_itself: "lchown lsetxattr lremovexattr",
}


def _simple(watcher: EffectWatcher, name: str) -> Callable[..., int | None] | None:
    found = next((function for function, names in _SIMPLE.items() if name in names.split()), None)
    if found is None:
        return None
    return partial(found, watcher) if name.endswith("at") else lambda pid, *rest: found(watcher, pid, _CWD, *rest)

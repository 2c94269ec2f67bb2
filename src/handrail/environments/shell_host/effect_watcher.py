"""The effect watcher: is told of every system call that changes a file before it happens, and keeps what was there. It runs in
a process above the shells (effect_server.py), because the kernel lets only such a one and root look into their memory
everywhere. A call waits in the kernel until it is answered. If the watcher dies, the kernel fails every further change with
ENOSYS: nothing can happen that is not in the journal."""

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
from operator import itemgetter
from typing import Any, Callable, Iterable, Union  # noqa: UP035  Python 3.8 knows no other place

from . import syscall_filter
from .effect_takeover import Takeover
from .held_calls import Ask, HeldCall, HeldNotices, Hold, Reply, answer_notice, nobody
from .held_connects import CALLS, HeldConnects, contact
from .journal import CallJournal
from .journal_log import JournalFailed, lstat
from .outside_writes import OutsideWrites
from .syscall_names import EXHAUSTED, Elsewhere, Names, Unreadable
from .wire import CALL_PAGE, Packet

_RECEIVE, _SET_FLAGS = 0xC0502100, 0x40082104
_SYNC_WAKE_UP = 1
_NOTICE = struct.Struct("<QI4xi12x6Q")  # struct seccomp_notif: id, process, number and arguments of the system call
_ZEROS = bytes(_NOTICE.size)
_CWD, _MAX_ADDRESS = 0xFFFFFF9C, 128
_O_TMPFILE, _O_NEW = 0x400000, os.O_CREAT | os.O_EXCL
_RENAME_NOREPLACE, _RENAME_EXCHANGE = 1, 2
_AT_SYMLINK_NOFOLLOW, _AT_EMPTY_PATH = 0x100, 0x1000
_IS_ROOT = os.geteuid() == 0
_CALL_PAGE = f"/memfd:{CALL_PAGE} (deleted)"
_VIRTUAL = re.compile(r"/(?:proc|sys|dev(?!/shm/))/").match
Answer = Union[int, Reply, None]  # noqa: UP007  Python 3.8 knows no other
"""An error, or what the caller gets for what was performed here; None lets the kernel perform it."""
CallOf = Callable[[int], CallJournal]
"""The journal of the call that a process belongs to."""


class EffectWatcher:
    """Answers the notices of one listener. `is_kept_out` says of a path that nothing may change there; below `private` ones
    only the processes themselves see what they do. `ask` is given what a system call waits for, and the function that takes the
    answer, now or later. `contained` says what is outside, see outside_writes.py. With `holds_network` every connection waits for
    an answer."""

    def __init__(
        self,
        listener: int,
        call_of: CallOf,
        is_kept_out: Callable[[str], bool],
        *,
        kept_out_error: int = errno.EACCES,
        private: Iterable[str] = (),
        ask: Ask = nobody,
        contained: Packet | None = None,
        holds_network: bool = False,
    ) -> None:
        self.listener, self._kept_out_error, self._private = listener, kept_out_error, tuple(private)
        self._call_of, self._is_kept_out = call_of, is_kept_out
        self._held = HeldNotices(listener, ask)
        self._names = Names()
        self._outside = OutsideWrites(contained, self._names.memory) if contained is not None else None
        self._allowed: frozenset[str] | None = None  # what was answered with yes, while that is performed
        self._current: tuple[int, list[int]] = (0, [])
        self._called = {number: name for name, number in syscall_filter.numbers().items()}
        self._connects = HeldConnects(self._names.memory, call_of) if holds_network else None
        # What is no connection, or could not be looked at, must not become one.
        waiting = [number for number, name in self._called.items() if holds_network and name in CALLS]
        self._unclear = dict.fromkeys(waiting, errno.EACCES)
        self._takeover: Takeover | None = None
        self.on_over: Callable[[int], None] = lambda _: None  # gets the process that says that its command is over
        self._handlers: dict[int, tuple[Callable[..., Answer], Callable[..., Any]]] = {
            number: (getattr(self, _HANDLERS[name][0]), _HANDLERS[name][1]) for number, name in self._called.items()
        }
        with contextlib.suppress(OSError):  # a kernel before 6.6
            fcntl.ioctl(listener, _SET_FLAGS, _SYNC_WAKE_UP)

    def take_folders_over(self, shell: int) -> None:
        """Move what `rm -rf` is to delete: see effect_takeover.py. `shell` is the process that has installed the filter."""
        self._takeover = Takeover(shell, self._names, self._is_kept_out)

    def serve(self, event: int) -> bool:
        """Answer a notice that waits, after a poll of the listener has found `event`. False when no process is left under the
        filter."""
        if event & (select.POLLHUP | select.POLLERR | select.POLLNVAL):
            return False
        try:
            notice, pid, number, *arguments = _NOTICE.unpack(fcntl.ioctl(self.listener, _RECEIVE, _ZEROS))
        except OSError:
            return True  # the process was killed meanwhile
        arguments.append(_CWD)
        try:
            error = self._error_of(pid, number, arguments)
        except Hold as hold:
            self._held.hold(notice, pid, self._call_of(pid).call, hold)
            return True
        except JournalFailed as failure:
            error = failure.errno
        except Exception:  # noqa: BLE001  a fault here must neither let a change through nor end all shells
            error = errno.EIO
        if isinstance(error, Reply):
            self._held.give(notice, error)
        else:
            answer_notice(self.listener, notice, error)
        return True

    def close(self) -> None:
        os.close(self.listener)

    def _error_of(self, pid: int, number: int, arguments: list[int]) -> Answer:
        self._current = number, arguments
        try:
            handler, pick = self._handlers[number]
            return handler(pid, *pick(arguments))
        except Unreadable:
            self._call_of(pid).unseen("", f"a process hides its memory (system call {number})")
            return self._unclear.get(number)
        except Elsewhere as elsewhere:
            # Our own mounts of this kind are empty, and gone with the shell.
            if not elsewhere.path.startswith(self._private):
                self._call_of(pid).unseen(elsewhere.path, "a process changes it that has mounts of its own")
            return None
        except (OSError, KeyError, ValueError) as error:
            is_ours = isinstance(error, OSError) and error.errno in EXHAUSTED
            # A bad name or descriptor: the system call fails by itself.
            return errno.EIO if is_ours else self._unclear.get(number)

    def _change(
        self,
        pid: int,
        journal: Callable[[CallJournal], None],
        *paths: str,
        fd: int | None = None,
        deleted: os.stat_result | None = None,
    ) -> Answer:
        """Write down what the system call changes, and let the kernel perform it. What it sees read-only has to be asked first,
        and is performed here. `fd` is the caller's descriptor of what it changes, `deleted` what goes."""
        for path in paths:
            if self._is_kept_out(path):
                return self._kept_out_error
        outside = self._outside_of(pid, paths, fd)
        if outside:
            return self._change_outside(pid, journal, paths, outside)
        call = self._call_of(pid)
        if deleted is not None and call.limit is not None and not call.is_new(paths[0]):
            call.limit.check(paths[0], deleted, pid, call.remove)
        journal(call)
        return None

    def _outside_of(self, pid: int, paths: tuple[str, ...], fd: int | None = None) -> list[str]:
        return self._outside.among(pid, self._called[self._current[0]], paths, fd) if self._outside is not None else []

    def _change_outside(
        self, pid: int, journal: Callable[[CallJournal], None], paths: tuple[str, ...], outside: list[str]
    ) -> Answer:
        assert self._outside is not None
        number, arguments = self._current
        operation = self._called[number]
        if not self._outside.is_quiet(operation, outside):
            if self._allowed is None:
                error = self._outside.refusal(pid, operation, outside)
                if error:
                    return error
                held = HeldCall("write outside", operation, outside[0], second="".join(outside[1:]))
                raise Hold(held, lambda: self._again(pid, number, arguments, outside), errno.EACCES)
            if not self._allowed.issuperset(outside):
                return errno.EACCES  # it was swapped for another one meanwhile
        journal(self._call_of(pid))
        return self._outside.perform(pid, operation, paths, arguments)

    def _again(self, pid: int, number: int, arguments: list[int], allowed: list[str]) -> Answer:
        """After the answer everything is looked at again: others may have changed it."""
        self._allowed = frozenset(allowed)
        try:
            return self._error_of(pid, number, arguments)
        finally:
            self._allowed = None

    def _opened(self, pid: int, folder: int, name: int, flags: int) -> Answer:
        if not flags & syscall_filter.WRITE_FLAGS:
            if self._takeover is not None:
                self._takeover.before(pid, name, self._call_of)
            return None
        path = self._names.path(pid, folder, name)
        if path is None:
            return None
        is_exclusive = flags & _O_NEW == _O_NEW
        found = None if is_exclusive else lstat(path)
        is_in_new = found is None and flags & os.O_CREAT and self._call_of(pid).is_new(path)
        if is_in_new and not self._outside_of(pid, (path,)):
            return None  # it is made in a folder that is new itself, or it fails
        found = lstat(path) if is_exclusive else found
        if found is not None and stat.S_ISLNK(found.st_mode) and not flags & os.O_NOFOLLOW:
            followed, found = self._names.target(path)
            if followed is None:
                return errno.EACCES if os.readlink(path) == _CALL_PAGE else None
            path = followed
        if _VIRTUAL(path):
            # The memory of another process: what is written there makes that one act. As _of_process of syscall_names spells it:
            # /proc/PID/mem if it is its own, else /proc/PID/root/proc/OTHER/mem.
            words = path.split("/")
            is_memory = words[-1] == "mem" and words[1] == "proc" and words[3] == "root"
            return self._other_process(pid, int(words[5])) if is_memory else None
        if self._is_kept_out(path):  # also what the probe opens, which is not there
            return self._kept_out_error
        if found is None:
            return self._change(pid, lambda call: call.create(path), path) if flags & os.O_CREAT else None
        if stat.S_ISDIR(found.st_mode) and flags & _O_TMPFILE:
            return self._change(pid, lambda _: None, path)
        if not stat.S_ISREG(found.st_mode) or is_exclusive or not (_IS_ROOT or os.access(path, os.W_OK)):
            return None  # nothing of it changes, or it fails by itself
        is_append = flags & os.O_APPEND and flags & os.O_ACCMODE == os.O_WRONLY and not flags & os.O_TRUNC
        return self._change(pid, lambda call: call.change(path, found, only_grows=bool(is_append)), path)

    def _truncated(self, pid: int, folder: int, name: int) -> Answer:
        return self._opened(pid, folder, name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)

    def _opened_how(self, pid: int, folder: int, name: int, how: int) -> Answer:
        flags = struct.unpack("Q", self._names.memory.read(pid, how, 8))[0]
        return self._opened(pid, folder, name, flags) if flags & syscall_filter.WRITE_FLAGS else None

    def _removed(self, pid: int, folder: int, name: int) -> Answer:
        path = self._names.path(pid, folder, name)
        found = lstat(path) if path is not None else None
        if path is None or found is None:
            return None
        if not stat.S_ISREG(found.st_mode):
            self._names.forget()
        return self._change(pid, lambda call: call.remove(path, found), path, deleted=found)

    def _renamed(self, pid: int, folder: int, name: int, to_folder: int, to_name: int, flags: int = 0) -> Answer:
        path, to = self._names.path(pid, folder, name), self._names.path(pid, to_folder, to_name)
        found = lstat(path) if path is not None else None
        if path is None or to is None or found is None or path == to:
            return None
        there = lstat(to)
        if there is not None and (flags & _RENAME_NOREPLACE or os.path.samestat(found, there)):
            return None  # it fails, or does nothing
        if not stat.S_ISREG(found.st_mode) or (there is not None and not stat.S_ISREG(there.st_mode)):
            self._names.forget()
        is_exchange = bool(flags & _RENAME_EXCHANGE)
        return self._change(pid, lambda call: call.rename(path, found, to, there, exchange=is_exchange), path, to)

    def _made_folder(self, pid: int, folder: int, name: int) -> Answer:
        return self._made(pid, folder, name, is_folder=True)

    def _made_symlink(self, pid: int, folder: int, name: int) -> Answer:
        self._names.forget()
        return self._made(pid, folder, name)

    def _made(self, pid: int, folder: int, name: int, *, is_folder: bool = False, source: str = "") -> Answer:
        """`source` is the file that a hard link is made to."""
        path = self._names.path(pid, folder, name)
        if path is None or lstat(path) is not None:
            return None
        link_to, paths = (os.lstat(source).st_ino, (source, path)) if source else (0, (path,))
        return self._change(pid, lambda call: call.create(path, is_folder=is_folder, link_to=link_to), *paths)

    def _linked(self, pid: int, folder: int, name: int, to_folder: int, to: int, flags: int = 0) -> Answer:
        raw = self._names.memory.name(pid, name)
        if flags & _AT_EMPTY_PATH or raw.startswith((b"/proc/", b"/dev/fd/")):
            return self._made(pid, to_folder, to)  # a file without a name (O_TMPFILE) gets one
        path = self._names.path(pid, folder, name)
        found = lstat(path) if path is not None else None
        if path is None or found is None:
            return None
        return self._made(pid, to_folder, to, source=path)  # another name for what is kept would make it changeable

    def _bound(self, pid: int, address: int, size: int) -> Answer:
        """Binding a local socket to a path makes a file."""
        raw = self._names.memory.read(pid, address, min(size, _MAX_ADDRESS))
        if len(raw) < 3 or struct.unpack_from("H", raw)[0] != socket.AF_UNIX or raw[2] == 0:
            return None
        name = os.fsdecode(raw[2:].split(b"\0")[0])
        path = os.path.join(self._names.folder(pid, _CWD), name)
        path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        is_old = path.startswith("/proc/") or lstat(path) is not None
        return None if is_old else self._change(pid, lambda call: call.create(path), path)

    def _cut(self, pid: int, path: str | None, fd: int | None = None) -> Answer:
        found = lstat(path) if path is not None else None
        if path is None or found is None or not stat.S_ISREG(found.st_mode) or _VIRTUAL(path):
            return None
        return self._change(pid, lambda call: call.change(path, found), path, fd=fd)

    def _cut_by_name(self, pid: int, folder: int, name: int) -> Answer:
        path = self._names.path(pid, folder, name)
        return self._cut(pid, self._names.target(path)[0] if path is not None else None)

    def _cut_open(self, pid: int, fd: int) -> Answer:
        return self._cut(pid, self._names.of_descriptor(pid, fd), fd)

    def _appends_no_more(self, pid: int, fd: int) -> Answer:
        path = self._names.of_descriptor(pid, fd)
        return self._cut(pid, path, fd) if path is not None and self._call_of(pid).grows(path) else None

    def _marked(self, pid: int, path: str | None, *, follow: bool = True, fd: int | None = None) -> Answer:
        if path is None:
            return None
        target, found = self._names.target(path) if follow else (path, lstat(path))
        if target is None or found is None or _VIRTUAL(target):
            return None
        return self._change(pid, lambda call: call.attributes(target, found), target, fd=fd)

    def _marked_by_name(self, pid: int, folder: int, name: int, flags: int = 0) -> Answer:
        return self._marked(pid, self._names.path(pid, folder, name), follow=not flags & _AT_SYMLINK_NOFOLLOW)

    def _marked_itself(self, pid: int, folder: int, name: int) -> Answer:
        return self._marked(pid, self._names.path(pid, folder, name), follow=False)

    def _marked_open(self, pid: int, fd: int) -> Answer:
        return self._marked(pid, self._names.of_descriptor(pid, fd), fd=fd)

    def _timed(self, pid: int, folder: int, name: int, flags: int) -> Answer:
        path = self._names.path(pid, folder, name) if name else self._names.of_descriptor(pid, folder)
        return self._marked(pid, path, follow=not flags & _AT_SYMLINK_NOFOLLOW, fd=None if name else folder)

    def _contacted(self, pid: int, fd: int, address: int, size: int) -> None:
        with contextlib.suppress(OSError):  # it fails by itself, or is refused
            raw = self._names.memory.read(pid, address, min(size, _MAX_ADDRESS))
            contact(pid, fd, raw, self._call_of, self._private, is_held=self._connects is not None)

    def _connected(self, pid: int, fd: int, address: int, size: int) -> int | None:
        self._contacted(pid, fd, address, size)
        return self._connects.connect(pid, fd, address, size) if self._connects is not None else None

    def _sent_to(self, pid: int, *arguments: int) -> int | None:
        self._contacted(pid, -1, arguments[4], arguments[5])
        return self._connects.send_to(pid, *arguments) if self._connects is not None else None

    def _sent(self, pid: int, fd: int, first: int, flags: int, count: int | None = None) -> int | None:
        return self._connects.send_messages(pid, fd, first, flags, count) if self._connects is not None else None

    def _other_process(self, pid: int, other: int) -> Answer:
        """A process may act on another one of its own call: a debugger. On others it would act in their name."""
        here = self._names.process(pid, other)
        return None if not here or self._call_of(here) is self._call_of(pid) else errno.EPERM

    def _traced(self, pid: int, request: int, other: int) -> Answer:
        return self._other_process(pid, other) if other and request else None

    def _over(self, pid: int) -> Answer:
        self.on_over(pid)
        return errno.ESRCH

    def _refused(self, _: int) -> Answer:
        return errno.EPERM

    def _changed_root(self, _: int) -> None:
        self._names.forget()

    def _restricted(self, _: int) -> None:
        """A process may do less from now on, in a way that cannot be seen from outside."""
        self._takeover = None


# By method: the system calls, each with the places of its arguments that the method takes. A dash is the working directory, where
# the method takes a folder.
_METHODS = {
    "_opened": "open -01, openat 012",
    "_truncated": "creat -0",
    "_opened_how": "openat2 012",
    "_removed": "unlink -0, unlinkat 01, rmdir -0",
    "_renamed": "rename -0-1, renameat 0123, renameat2 01234",
    "_made": "mknod -0, mknodat 01",
    "_made_folder": "mkdir -0, mkdirat 01",
    "_made_symlink": "symlink -1, symlinkat 12",
    "_linked": "link -0-1, linkat 01234",
    "_bound": "bind 12",
    "_cut_by_name": "truncate -0",
    "_cut_open": "ftruncate 0, fallocate 0",
    "_appends_no_more": "fcntl 0",
    "_marked_by_name": "chmod -0, chown -0, setxattr -0, removexattr -0, utime -0, utimes -0, fchmodat 01, futimesat 01, "
    "fchmodat2 013, fchownat 014, setxattrat 012, removexattrat 012",
    "_marked_itself": "lchown -0, lsetxattr -0, lremovexattr -0",
    "_marked_open": "fchmod 0, fchown 0, fsetxattr 0, fremovexattr 0",
    "_timed": "utimensat 013",
    "_connected": "connect 012",
    "_sent_to": "sendto 012345",
    "_sent": "sendmsg 012, sendmmsg 0132",
    "_other_process": "process_vm_writev 0",
    "_traced": "ptrace 01",
    "_over": "kill",
    "_refused": "pidfd_getfd",
    "_changed_root": "chroot",
    "_restricted": "landlock_restrict_self",
}


def _picker(places: str) -> Callable[[list[int]], Any]:
    """Takes arguments out of a list whose last element is the working directory."""
    indexes = [-1 if place == "-" else int(place) for place in places]
    return itemgetter(*indexes) if len(indexes) > 1 else lambda arguments: [arguments[index] for index in indexes]


_HANDLERS = {
    name: (method, _picker(places))
    for method, calls in _METHODS.items()
    for name, _, places in (call.partition(" ") for call in calls.split(", "))
}

"""Writes outside of the work tree, which commands see read-only: the effect watcher performs one for its caller after a yes.
The watcher runs outside of the caller's mounts. It performs exactly the system call that was asked about, on the path that was
asked about: the folder is opened again without following links, and the last name is not followed either, so that a name that
is swapped meanwhile leads nowhere. It acts with the user, the groups and the umask of the caller."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
import struct
from typing import Callable, Dict, Iterator, List, Sequence  # noqa: UP035  Python 3.8 knows no other place

from . import proc
from .held_calls import Reply
from .journal_log import lstat
from .syscall_names import Memory
from .wire import Packet

_libc = ctypes.CDLL(None, use_errno=True)
_RENAMEAT2 = {"x86_64": 316, "aarch64": 276}.get(os.uname().machine, -1)
_AT_SYMLINK_NOFOLLOW = 0x100
_MAX_XATTR = 1 << 12
_OF_ATTRIBUTES = ("chmod", "chown", "setxattr", "removexattr", "utime", "utimes", "utimens")
_OF_CONTENT = ("open", "openat2", "creat", "truncate")
_FIFO_OR_FILE = (0, stat.S_IFREG, stat.S_IFIFO)
_Perform = Callable[["_Caller", Sequence[str], List[int]], "Reply | None"]  # noqa: UP006  the same


class OutsideWrites:
    """`policy` has the folders that are `writable`, those that are `quiet` (written without a question, and maybe not there
    yet), and those that are `sealed`: nobody writes there. In a container it has those that are `asked` instead: these are
    mounts that the kernel lets commands write to, so that nothing but the watcher holds them."""

    def __init__(self, policy: Packet, memory: Memory) -> None:
        self._memory = memory
        self._writable, quiet, self._sealed = (
            tuple(path.rstrip("/") + "/" for path in policy[name]) for name in ("writable", "quiet", "sealed")
        )
        self._quiet = (*self._writable, *quiet)
        self.asked = tuple(path.rstrip("/") + "/" for path in policy.get("asked", ()))

    def among(self, pid: int, operation: str, paths: Sequence[str], fd: int | None) -> list[str]:
        """Those of the paths that the process could change if they were not read-only for it. A name that moves from one
        writable folder to another is among them, as these are mounts of their own. `fd` is its descriptor of the path."""
        if len(paths) == 1 and f"{paths[0]}/".startswith(self._writable):
            return []  # nearly all of them: this is asked at each system call
        places = [path + "/" for path in paths]
        if self.asked:
            found = [] if operation in _BY_OPENED else [p for p in paths if f"{p}/".startswith(self.asked)]
            return found[-1:] if operation in ("link", "linkat") else found
        if not _known(operation) or any(place.startswith(self._sealed) for place in places):
            return []  # the kernel refuses it
        if operation.startswith("rename") and any(one.startswith(place) for one in self._sealed for place in places):
            return []  # the same: what is above a sealed folder cannot be put elsewhere, with all that is in it
        roots = [next((root for root in self._writable if place.startswith(root)), "") for place in places]
        if all(roots):
            return list(paths) if len(set(roots)) > 1 else []
        if operation in ("link", "linkat") and roots[-1]:
            return []  # of another file system, as the kernel says
        found = [path for path, root in zip(paths, roots) if not root]  # noqa: B905  Python 3.8 knows no strict
        found = found[-1:] if operation in ("link", "linkat") else found
        return [path for path in found if self._is_read_only(pid, path, fd)]

    @staticmethod
    def _is_read_only(pid: int, path: str, fd: int | None) -> bool:
        seen = f"/proc/{pid}/root{os.path.dirname(path)}" if fd is None else f"/proc/{pid}/fd/{fd}"
        try:
            return bool(os.statvfs(seen).f_flag & os.ST_RDONLY)
        except OSError:
            return False  # it fails by itself

    def is_quiet(self, operation: str, paths: Sequence[str]) -> bool:
        """Whether nobody is asked, as about making a folder that a quiet one is to lie in."""
        places = [path + "/" for path in paths]
        if operation in ("mkdir", "mkdirat") and any(quiet.startswith(places[0]) for quiet in self._quiet):
            return True
        return all(place.startswith(self._quiet) for place in places)

    def refusal(self, pid: int, operation: str, paths: Sequence[str]) -> int:
        """The error that the caller would get for want of permissions: then there is nothing to ask. 0 for none."""
        known = _known(operation)
        with _Caller(pid, self._memory).acting() as caller:
            for path in paths:
                found = lstat(path)
                if found is not None and known in _OF_ATTRIBUTES:
                    if caller.user not in (0, found.st_uid):
                        return errno.EPERM
                    continue
                is_there = found is not None and known in _OF_CONTENT
                place, mode = (path, os.W_OK) if is_there else (os.path.dirname(path), 3)
                if not os.access(place, mode, effective_ids=True):
                    return errno.EACCES
        return 0

    def perform(self, pid: int, operation: str, paths: Sequence[str], arguments: list[int]) -> int | Reply:
        """Perform the system call on `paths`, as its caller. An error number, or what the caller gets."""
        is_at = "at" in operation[-3:] and operation != "creat"
        rest = arguments if operation.startswith("symlink") else arguments[2 if is_at else 1 :]
        try:
            if not _known(operation):
                raise OSError(errno.EACCES, "nobody else can perform it")
            with _Caller(pid, self._memory).acting() as caller:
                return _OPERATIONS[_known(operation)](caller, paths, rest) or Reply()
        except OSError as error:
            return error.errno or errno.EIO


class _Caller:
    """The process on whose behalf we act."""

    def __init__(self, pid: int, memory: Memory) -> None:
        self.pid, self._memory = pid, memory
        with open(f"/proc/{pid}/status", "rb") as file:
            fields = {name: rest.split() for name, _, rest in (line.partition(b":") for line in file)}
        self.user, self._group = int(fields[b"Uid"][3]), int(fields[b"Gid"][3])
        self._groups = [int(word) for word in fields[b"Groups"]]
        self._umask = int(fields.get(b"Umask", [b"0"])[0], 8)

    @contextlib.contextmanager
    def acting(self) -> Iterator[_Caller]:
        mine, groups, is_other = os.umask(self._umask), os.getgroups(), os.geteuid() == 0 and self.user != 0
        try:
            if is_other:  # without a user other than root, the kernel would grant all
                os.setgroups(self._groups)
                _libc.setfsgid(self._group)
                _libc.setfsuid(self.user)
            yield self
        finally:
            if is_other:
                _libc.setfsuid(0)
                _libc.setfsgid(os.getegid())
                os.setgroups(groups)
            os.umask(mine)

    def text(self, address: int) -> str:
        return os.fsdecode(self._memory.name(self.pid, address))

    def read(self, address: int, size: int) -> bytes:
        return self._memory.read(self.pid, address, size)


@contextlib.contextmanager
def _folder(path: str) -> Iterator[tuple[int, str]]:
    """The folder of a path, opened without following a link anywhere, and the last name."""
    folder, name = os.path.split(path)
    with proc.opened_without_links(folder) as fd:
        yield fd, name


def _opened(path: str, flags: int, mode: int) -> int:
    """A regular file. Never waits, as the opening of a pipe could."""
    with _folder(path) as (folder, name):
        fd = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode & 0o7777, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EACCES, "it is not a regular file")
    if not flags & os.O_NONBLOCK:
        os.set_blocking(fd, True)
    return fd


def _given(path: str, flags: int, mode: int) -> Reply:
    return Reply(fd=_opened(path, flags, mode), is_closed_on_exec=bool(flags & os.O_CLOEXEC))


def _truncate(path: str, size: int) -> None:
    with proc.closing(_opened(path, os.O_WRONLY, 0)) as fd:
        os.ftruncate(fd, size)


def _at(path: str, act: Callable[..., object], *arguments: object, **more: object) -> None:
    """Call a function of `os` on a path."""
    with _folder(path) as (folder, name):
        act(name, *arguments, dir_fd=folder, **more)


def _mknod(path: str, mode: int) -> None:
    if stat.S_IFMT(mode) not in _FIFO_OR_FILE:
        raise OSError(errno.EPERM, "a device")
    _at(path, os.mknod, mode)


def _symlink(path: str, target: str) -> None:
    with _folder(path) as (folder, name):
        os.symlink(target, name, dir_fd=folder)


def _link(paths: Sequence[str]) -> None:
    if len(paths) < 2:
        raise OSError(errno.EXDEV, "a file without a name, which only its own folder can give one")
    with _folder(paths[0]) as (folder, name), _folder(paths[1]) as (to_folder, to):
        os.link(name, to, src_dir_fd=folder, dst_dir_fd=to_folder, follow_symlinks=False)


def _rename(paths: Sequence[str], flags: int) -> None:
    with _folder(paths[0]) as (folder, name), _folder(paths[1]) as (to_folder, to):
        result = _libc.syscall(_RENAMEAT2, folder, os.fsencode(name), to_folder, os.fsencode(to), flags)
        proc.check(result, "rename")


def _chown(path: str, user: int, group: int) -> None:
    ids = [-1 if number & _ALL_BITS == _ALL_BITS else number & _ALL_BITS for number in (user, group)]
    _at(path, os.chown, *ids, follow_symlinks=False)


def _on_target(path: str, act: Callable[..., object], *arguments: object) -> None:
    """Call a function of `os` on a path that leads to what is there now, and that nobody can swap."""
    with _folder(path) as (folder, name):
        found = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    with proc.closing(found) as fd:
        if stat.S_ISLNK(os.fstat(fd).st_mode):
            raise OSError(errno.ELOOP, "a link was put there")
        act(f"/proc/self/fd/{fd}", *arguments)


def _set_xattr(caller: _Caller, path: str, name: int, value: int, size: int, flags: int) -> None:
    if size > _MAX_XATTR:
        raise OSError(errno.E2BIG, "it is too long")
    _on_target(path, os.setxattr, caller.text(name), caller.read(value, size) if size else b"", flags & 3)


def _set_times(caller: _Caller, path: str, address: int, layout: str, nanoseconds: int) -> None:
    """`layout` is that of the caller's structure, in which a fraction has so many nanoseconds."""
    times = None
    if address:
        numbers = struct.unpack(layout, caller.read(address, struct.calcsize(layout)))
        if len(numbers) == 2:  # seconds alone
            numbers = numbers[0], 0, numbers[1], 0
        times = struct.pack("4q", numbers[0], numbers[1] * nanoseconds, numbers[2], numbers[3] * nanoseconds)
    with _folder(path) as (folder, name):
        proc.check(_libc.utimensat(folder, os.fsencode(name), times, _AT_SYMLINK_NOFOLLOW), "utimensat")


_CREAT = os.O_CREAT | os.O_WRONLY | os.O_TRUNC
_AT_REMOVEDIR, _ALL_BITS = 0x200, 0xFFFFFFFF
# By system call: the caller, the paths (two for a rename or a link), and the arguments in the registers after the first path. One
# with a folder before its path (openat) is like that without, and so is one by descriptor (fchmod) or for a link (lchown).
_OPERATIONS: Dict[str, _Perform] = {  # noqa: UP006  the same
    "open": lambda _, paths, a: _given(paths[0], a[0], a[1]),
    "openat2": lambda caller, paths, a: _given(paths[0], *struct.unpack("QQ", caller.read(a[0], 16))),
    "creat": lambda _, paths, a: _given(paths[0], _CREAT, a[0]),
    "truncate": lambda _, paths, a: _truncate(paths[0], a[0]),
    "unlink": lambda _, paths, __: _at(paths[0], os.unlink),
    "unlinkat": lambda _, paths, a: _at(paths[0], os.rmdir if a[0] & _AT_REMOVEDIR else os.unlink),
    "rmdir": lambda _, paths, __: _at(paths[0], os.rmdir),
    "mkdir": lambda _, paths, a: _at(paths[0], os.mkdir, a[0] & 0o7777),
    "mknod": lambda _, paths, a: _mknod(paths[0], a[0]),
    "symlink": lambda caller, paths, a: _symlink(paths[0], caller.text(a[0])),
    "link": lambda _, paths, __: _link(paths),
    "rename": lambda _, paths, __: _rename(paths, 0),
    "renameat2": lambda _, paths, a: _rename(paths, a[2]),
    "chmod": lambda _, paths, a: _on_target(paths[0], os.chmod, a[0] & 0o7777),
    "chown": lambda _, paths, a: _chown(paths[0], a[0], a[1]),
    "setxattr": lambda caller, paths, a: _set_xattr(caller, paths[0], *a[:4]),
    "removexattr": lambda caller, paths, a: _on_target(paths[0], os.removexattr, caller.text(a[0])),
    "utime": lambda caller, paths, a: _set_times(caller, paths[0], a[0], "2q", 0),
    "utimes": lambda caller, paths, a: _set_times(caller, paths[0], a[0], "4q", 1000),
    "utimens": lambda caller, paths, a: _set_times(caller, paths[0], a[0], "4q", 1),
}
_BY_OPENED = ("fcntl", "fallocate", "ftruncate")  # whoever opened the file for writing had the answer
_UNLIKE = ("setxattrat", "removexattrat", "bind", *_BY_OPENED)


def _known(operation: str) -> str:
    """The one of `_OPERATIONS` that a system call is like; nothing for one that is not performed for others."""
    is_second = operation not in _OPERATIONS and operation.endswith("at2")
    base = operation[: -len("at2")] if is_second else operation
    base = base if base in _OPERATIONS or not base.endswith("at") else base[: -len("at")]
    base = base[1:] if base not in _OPERATIONS and base[0] in "fl" else base
    return base if base in _OPERATIONS and operation not in _UNLIKE else ""

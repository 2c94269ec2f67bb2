"""Writes outside of the work tree, which commands see read-only: the effect watcher performs one for its caller after a yes.

The watcher runs outside of the caller's mounts. It performs exactly the system call that was asked about, on the path that was
asked about: the folder is opened again without following links, and the last name is not followed either, so that a name that is
swapped meanwhile leads nowhere. It acts with the user, the groups and the umask of the caller.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
import struct
from typing import Callable, Dict, Iterator, List, Sequence  # noqa: UP035  Python 3.8 knows no other place

from .held_calls import Reply
from .syscall_names import Memory
from .wire import Packet

_libc = ctypes.CDLL(None, use_errno=True)
_OPENAT2 = 437
_RENAMEAT2 = {"x86_64": 316, "aarch64": 276}.get(os.uname().machine, -1)
_NO_LINKS = 0x04 | 0x02  # RESOLVE_NO_SYMLINKS, RESOLVE_NO_MAGICLINKS
_AT_FDCWD, _AT_SYMLINK_NOFOLLOW = -100, 0x100
_MAX_XATTR = 1 << 12
_FIFO_OR_FILE = (0, stat.S_IFREG, stat.S_IFIFO)
_Perform = Callable[["_Caller", List[str], List[int]], "int | Reply"]  # noqa: UP006  the same


class OutsideWrites:
    """`policy` has the folders that are `writable`, those that are `quiet` (written without a question, and maybe not there
    yet), and those that are `sealed`: nobody writes there."""

    def __init__(self, policy: Packet, memory: Memory) -> None:
        self._memory = memory
        self._writable, quiet, self._sealed = (
            tuple(path.rstrip("/") + "/" for path in policy[name]) for name in ("writable", "quiet", "sealed")
        )
        self._quiet = (*self._writable, *quiet)

    def among(self, pid: int, operation: str, paths: Sequence[str], fd: int | None) -> list[str]:
        """Those of the paths that the process could change if they were not read-only for it. A name that moves from one
        writable folder to another is among them, as these are mounts of their own. `fd` is its descriptor of the path."""
        places = [path + "/" for path in paths]
        if len(places) == 1 and places[0].startswith(self._writable):
            return []
        if any(place.startswith(self._sealed) for place in places):
            return []  # the kernel refuses it
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

    def is_quiet(self, paths: Sequence[str]) -> bool:
        return all((path + "/").startswith(self._quiet) for path in paths)

    def refusal(self, pid: int, operation: str, paths: Sequence[str]) -> int:
        """The error that the caller would get for want of permissions: then there is nothing to ask. 0 for none."""
        with _Caller(pid, self._memory).acting() as caller:
            for path in paths:
                found = _lstat(path)
                is_attribute = operation.lstrip("fl").startswith(("chmod", "chown", "setxattr", "removexattr", "utim"))
                if is_attribute and found is not None:
                    if caller.user not in (0, found.st_uid):
                        return errno.EPERM
                elif found is not None and operation.startswith(("open", "creat", "trunc")):
                    if not os.access(path, os.W_OK, effective_ids=True):
                        return errno.EACCES
                elif not os.access(os.path.dirname(path), os.W_OK | os.X_OK, effective_ids=True):
                    return errno.EACCES
        return 0

    def perform(self, pid: int, operation: str, paths: Sequence[str], arguments: list[int]) -> int | Reply:
        """Perform the system call on `paths`, as its caller. An error number, or what the caller gets."""
        act = _OPERATIONS.get(operation)
        if act is None:
            return errno.EROFS
        try:
            with _Caller(pid, self._memory).acting() as caller:
                return act(caller, list(paths), arguments)
        except OSError as error:
            return error.errno or errno.EIO


class _Caller:
    """The process on whose behalf we act."""

    def __init__(self, pid: int, memory: Memory) -> None:
        self.pid, self._memory = pid, memory
        self.user = self._group = self._umask = 0
        self._groups: list[int] = []
        with open(f"/proc/{pid}/status", "rb") as file:
            for line in file:
                name, _, rest = line.partition(b":")
                words = rest.split()
                if name == b"Uid":
                    self.user = int(words[3])
                elif name == b"Gid":
                    self._group = int(words[3])
                elif name == b"Groups":
                    self._groups = [int(word) for word in words]
                elif name == b"Umask":
                    self._umask = int(words[0], 8)

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
    how = struct.pack("QQQ", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, 0, _NO_LINKS)
    fd = _libc.syscall(_OPENAT2, _AT_FDCWD, os.fsencode(folder), how, len(how))
    if fd < 0:
        raise OSError(ctypes.get_errno(), "the folder is not there, or a link leads to it")
    try:
        yield fd, name
    finally:
        os.close(fd)


@contextlib.contextmanager
def _target(path: str) -> Iterator[str]:
    """A path that leads to what is there now, and that nobody can swap."""
    with _folder(path) as (folder, name):
        fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        if stat.S_ISLNK(os.fstat(fd).st_mode):
            raise OSError(errno.ELOOP, "a link was put there")
        yield f"/proc/self/fd/{fd}"
    finally:
        os.close(fd)


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


def _open(path: str, flags: int, mode: int) -> Reply:
    return Reply(fd=_opened(path, flags, mode), is_closed_on_exec=bool(flags & os.O_CLOEXEC))


def _openat2(caller: _Caller, paths: list[str], arguments: list[int]) -> Reply:
    flags, mode = struct.unpack("QQ", caller.read(arguments[2], 16))
    return _open(paths[0], flags, mode)


def _truncate(_: _Caller, paths: list[str], arguments: list[int]) -> Reply:
    fd = _opened(paths[0], os.O_WRONLY, 0)
    try:
        os.ftruncate(fd, arguments[1])
    finally:
        os.close(fd)
    return Reply()


def _remove(paths: list[str], *, is_folder: bool) -> Reply:
    with _folder(paths[0]) as (folder, name):
        (os.rmdir if is_folder else os.unlink)(name, dir_fd=folder)
    return Reply()


def _mkdir(paths: list[str], mode: int) -> Reply:
    with _folder(paths[0]) as (folder, name):
        os.mkdir(name, mode & 0o7777, dir_fd=folder)
    return Reply()


def _mknod(paths: list[str], mode: int) -> int | Reply:
    if stat.S_IFMT(mode) not in _FIFO_OR_FILE:
        return errno.EPERM
    with _folder(paths[0]) as (folder, name):
        os.mknod(name, mode, dir_fd=folder)
    return Reply()


def _symlink(paths: list[str], target: str) -> Reply:
    with _folder(paths[0]) as (folder, name):
        os.symlink(target, name, dir_fd=folder)
    return Reply()


def _link(_: _Caller, paths: list[str], __: list[int]) -> int | Reply:
    if len(paths) < 2:
        return errno.EXDEV  # a file without a name, which only its own folder can give one
    with _folder(paths[0]) as (folder, name), _folder(paths[1]) as (to_folder, to):
        os.link(name, to, src_dir_fd=folder, dst_dir_fd=to_folder, follow_symlinks=False)
    return Reply()


def _rename(paths: list[str], flags: int = 0) -> int | Reply:
    with _folder(paths[0]) as (folder, name), _folder(paths[1]) as (to_folder, to):
        names = os.fsencode(name), os.fsencode(to)
        if _libc.syscall(_RENAMEAT2, folder, names[0], to_folder, names[1], flags) < 0:
            return ctypes.get_errno()
    return Reply()


def _chmod(paths: list[str], mode: int) -> Reply:
    with _target(paths[0]) as target:
        os.chmod(target, mode & 0o7777)
    return Reply()


def _chown(paths: list[str], user: int, group: int) -> Reply:
    with _folder(paths[0]) as (folder, name):
        os.chown(name, _signed(user), _signed(group), dir_fd=folder, follow_symlinks=False)
    return Reply()


def _set_xattr(caller: _Caller, paths: list[str], arguments: list[int]) -> int | Reply:
    _, name, value, size, flags = arguments[:5]
    if size > _MAX_XATTR:
        return errno.E2BIG
    with _target(paths[0]) as target:
        os.setxattr(target, caller.text(name), caller.read(value, size) if size else b"", flags & 3)
    return Reply()


def _remove_xattr(caller: _Caller, paths: list[str], arguments: list[int]) -> Reply:
    with _target(paths[0]) as target:
        os.removexattr(target, caller.text(arguments[1]))
    return Reply()


def _set_times(caller: _Caller, paths: list[str], address: int, layout: str, nanoseconds: int) -> int | Reply:
    """`layout` is that of the caller's structure, in which a fraction has so many nanoseconds."""
    times = None
    if address:
        numbers = struct.unpack(layout, caller.read(address, struct.calcsize(layout)))
        if len(numbers) == 2:  # seconds alone
            numbers = numbers[0], 0, numbers[1], 0
        times = struct.pack("4q", numbers[0], numbers[1] * nanoseconds, numbers[2], numbers[3] * nanoseconds)
    with _folder(paths[0]) as (folder, name):
        if _libc.utimensat(folder, os.fsencode(name), times, _AT_SYMLINK_NOFOLLOW) < 0:
            return ctypes.get_errno()
    return Reply()


def _signed(number: int) -> int:
    """A user or group number of a register; -1 leaves it as it is."""
    number &= 0xFFFFFFFF
    return -1 if number == 0xFFFFFFFF else number


def _lstat(path: str) -> os.stat_result | None:
    with contextlib.suppress(OSError):
        return os.lstat(path)
    return None


_CREAT = os.O_CREAT | os.O_WRONLY | os.O_TRUNC
_SECONDS, _FRACTIONS = "2q", "4q"
_AT_REMOVEDIR = 0x200
# By system call, with its arguments as they are in the registers. Of the paths, two are those of a rename or a link.
_OPERATIONS: Dict[str, _Perform] = {  # noqa: UP006  the same
    "open": lambda _, paths, a: _open(paths[0], a[1], a[2]),
    "creat": lambda _, paths, a: _open(paths[0], _CREAT, a[1]),
    "openat": lambda _, paths, a: _open(paths[0], a[2], a[3]),
    "openat2": _openat2,
    "truncate": _truncate,
    "unlink": lambda _, paths, __: _remove(paths, is_folder=False),
    "rmdir": lambda _, paths, __: _remove(paths, is_folder=True),
    "unlinkat": lambda _, paths, a: _remove(paths, is_folder=bool(a[2] & _AT_REMOVEDIR)),
    "mkdir": lambda _, paths, a: _mkdir(paths, a[1]),
    "mkdirat": lambda _, paths, a: _mkdir(paths, a[2]),
    "mknod": lambda _, paths, a: _mknod(paths, a[1]),
    "mknodat": lambda _, paths, a: _mknod(paths, a[2]),
    "symlink": lambda caller, paths, a: _symlink(paths, caller.text(a[0])),
    "symlinkat": lambda caller, paths, a: _symlink(paths, caller.text(a[0])),
    "link": _link,
    "linkat": _link,
    "rename": lambda _, paths, __: _rename(paths),
    "renameat": lambda _, paths, __: _rename(paths),
    "renameat2": lambda _, paths, a: _rename(paths, a[4]),
    "chmod": lambda _, paths, a: _chmod(paths, a[1]),
    "fchmod": lambda _, paths, a: _chmod(paths, a[1]),
    "fchmodat": lambda _, paths, a: _chmod(paths, a[2]),
    "fchmodat2": lambda _, paths, a: _chmod(paths, a[2]),
    "chown": lambda _, paths, a: _chown(paths, a[1], a[2]),
    "fchown": lambda _, paths, a: _chown(paths, a[1], a[2]),
    "lchown": lambda _, paths, a: _chown(paths, a[1], a[2]),
    "fchownat": lambda _, paths, a: _chown(paths, a[2], a[3]),
    "setxattr": _set_xattr,
    "lsetxattr": _set_xattr,
    "fsetxattr": _set_xattr,
    "removexattr": _remove_xattr,
    "lremovexattr": _remove_xattr,
    "fremovexattr": _remove_xattr,
    "utime": lambda caller, paths, a: _set_times(caller, paths, a[1], _SECONDS, 0),
    "utimes": lambda caller, paths, a: _set_times(caller, paths, a[1], _FRACTIONS, 1000),
    "futimesat": lambda caller, paths, a: _set_times(caller, paths, a[2], _FRACTIONS, 1000),
    "utimensat": lambda caller, paths, a: _set_times(caller, paths, a[2], _FRACTIONS, 1),
}

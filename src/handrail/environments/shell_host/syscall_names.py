"""What a system call that waits for an answer is about: names and structures in the memory of another process."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import stat
import sys
import time

from . import proc
from .journal_log import lstat, parent_of

_PAGE, _SHORT = 4096, 192
_MAX_NAME = 4096
# Without letting other threads run meanwhile, which takes as long again.
_read_memory = ctypes.PyDLL(None, use_errno=True).process_vm_readv
_read_memory.restype = ctypes.c_ssize_t
_ENCODING = sys.getfilesystemencoding()
_CWD = 0xFFFFFF9C  # AT_FDCWD, as it is in a register
_CACHE_SECONDS, _now = 1.0, time.monotonic
_DELETED = " (deleted)"
_STREAMS = {"/dev/stdin": "0", "/dev/stdout": "1", "/dev/stderr": "2"}
_REPEATED = re.compile(rb"(?:/\.?(?=/))+")
_NO_NAMES = (b"", b".", b"..")
EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)  # why we could not look: not the fault of the system call
_BY_PROCESS = (b"/proc/", b"/dev/")  # names that are another file for each process
# Devices that a command writes to all the time, and that cannot be changed.
_QUIET = frozenset((b"/dev/null", b"/dev/tty", b"/dev/zero", b"/dev/full", b"/dev/ptmx"))


class Unreadable(Exception):
    """The process lets nobody look into its memory."""


class Elsewhere(Exception):
    """The process sees another folder under this path than we do: it has mounts of its own."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_uint64), ("size", ctypes.c_size_t))  # struct iovec


class Memory:
    """Reads the memory of other processes. One thread may use it."""

    def __init__(self) -> None:
        self._buffer = ctypes.create_string_buffer(_PAGE + 1)
        self._here, self._there = _Vector(ctypes.addressof(self._buffer), _PAGE), _Vector()
        self._to, self._from = ctypes.byref(self._here), ctypes.byref(self._there)
        # Some containers refuse it.
        self._can_call = self._copy(os.getpid(), self._here.base, 1) == 1

    def read(self, pid: int, address: int, size: int) -> bytes:
        """At most a page."""
        if not self._can_call:
            return _read_file(pid, address, size)
        count = self._copy(pid, address, size)
        if count > 0:
            return ctypes.string_at(self._here.base, count)
        error = ctypes.get_errno()
        if count < 0 and error == errno.EPERM:
            raise Unreadable
        if size:
            raise OSError(error or errno.EFAULT, "its memory is gone")
        return b""

    def _copy(self, pid: int, address: int, size: int) -> int:
        """How many bytes of it are in the buffer now."""
        self._there.base, self._there.size = address, size
        return _read_memory(pid, self._to, 1, self._from, 1, 0)  # type: ignore[no-any-return]

    def name(self, pid: int, address: int) -> bytes:
        """A text that ends with NUL. Never over the end of a page: the next one may not exist."""
        size = min(_PAGE - (address & (_PAGE - 1)), _SHORT)  # most names are short, and less to copy is faster
        count = self._copy(pid, address, size) if self._can_call else 0
        if count > 0:
            self._buffer[count] = b"\0"
            found: bytes = self._buffer.value
            if len(found) < count:
                return found
        found = b""
        while len(found) < _MAX_NAME:
            at = address + len(found)
            piece, end, _ = self.read(pid, at, min(_PAGE - (at & (_PAGE - 1)), size)).partition(b"\0")
            found += piece
            if end:
                return found
            size = _PAGE
        raise OSError(errno.ENAMETOOLONG, "the name is too long")


def _read_file(pid: int, address: int, size: int) -> bytes:
    """Opened each time: it is the memory that the process had when it was opened, and another program has another."""
    try:
        fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:
        raise Unreadable from None
    content = b""
    with proc.closing(fd), contextlib.suppress(OSError, OverflowError):  # nobody has memory there
        content = os.pread(fd, size, address)
    if size and not content:
        raise OSError(errno.EFAULT, "its memory is gone")
    return content


class Names:
    """Turns names of other processes into canonical paths, with the last part not followed."""

    def __init__(self) -> None:
        self.memory = Memory()
        self._folders: dict[str, str] = {}
        # By process, where a name begins, and all of it but its last part.
        self._parents: dict[tuple[int, str, bytes], str] = {}
        self._roots: dict[int, str] = {}
        self._checked: set[tuple[int, str]] = set()  # process, and a folder that it sees as we do
        self._since = 0.0

    def forget(self) -> None:
        """Folders or links have changed, or a process has changed its root."""
        self._folders.clear()
        self._parents.clear()
        self._roots.clear()
        self._checked.clear()

    def path(self, pid: int, folder: int, address: int) -> str | None:
        """None for what cannot be changed, or does not exist: the system call itself will tell. Raises Elsewhere."""
        if _now() > self._since:  # somebody else may have changed folders and links, and numbers are used again
            self.forget()
            self._since = _now() + _CACHE_SECONDS
        raw = self.memory.name(pid, address)
        base = "" if raw[:1] == b"/" else self.folder(pid, folder)
        above, _, last = raw.rpartition(b"/")
        parent = self._parents.get((pid, base, above))
        if parent is not None and last not in _NO_NAMES:
            return parent + last.decode(_ENCODING, "surrogateescape")
        path = self._path(pid, folder, raw, base)
        if path is None or path.startswith("/proc/"):
            return path
        if not self._has_folder(pid, path):
            return None
        if last not in _NO_NAMES and not raw.startswith(_BY_PROCESS):
            self._parents[pid, base, above] = path[: path.rfind("/") + 1]
        return path

    def _has_folder(self, pid: int, path: str) -> bool:
        """Whether the folder of the path exists; if not, the system call fails by itself."""
        folder = parent_of(path)
        if (pid, folder) in self._checked:
            return True
        try:
            theirs = os.stat(f"/proc/{pid}/root{folder}")
        except FileNotFoundError:
            return False
        except PermissionError:
            if not os.access(f"/proc/{pid}/root", os.X_OK):
                raise Unreadable from None
            raise
        ours = lstat(folder)
        if ours is None or not os.path.samestat(ours, theirs):
            raise Elsewhere(path)
        self._checked.add((pid, folder))
        return True

    def _path(self, pid: int, folder: int, raw: bytes, base: str) -> str | None:
        if raw in _QUIET:
            return None
        if b"//" in raw or b"/./" in raw:
            raw = _REPEATED.sub(b"", raw)
        name = raw.decode(_ENCODING, "surrogateescape")
        if name.startswith("/proc/"):
            return self._of_process(pid, name)
        if not name:
            return self.of_descriptor(pid, folder)
        if not base:
            return self._absolute(pid, name)
        if "/" not in name and raw not in _NO_NAMES:
            return f"{base}/{name}" if base != "/" else f"/{name}"
        # Only the kernel knows what is above a folder that is gone.
        return self._canonical(f"{base if not base.endswith(_DELETED) else _link(pid, folder)}/{name}")

    def folder(self, pid: int, descriptor: int) -> str:
        try:
            return os.readlink(f"/proc/{pid}/cwd" if descriptor == _CWD else _link(pid, descriptor))
        except PermissionError:
            raise Unreadable from None

    def of_descriptor(self, pid: int, descriptor: int) -> str | None:
        """The file that a descriptor is open on; None if it has no name."""
        path = self.folder(pid, descriptor)
        if not path.startswith("/") or path.startswith("/memfd:") or path.endswith(_DELETED):
            return None
        return path if self._has_folder(pid, path) else None

    def target(self, path: str) -> tuple[str | None, os.stat_result | None]:
        """Where a path leads, and what is there."""
        found = lstat(path)
        if found is None or not stat.S_ISLNK(found.st_mode):
            return path, found
        if path.startswith("/proc/"):
            path = os.readlink(path)
            if not path.startswith("/") or path.endswith(_DELETED):
                return None, None
        else:
            path = os.path.realpath(path)
            if path.startswith("/proc/"):  # through a link such as /dev/fd, which is another for everybody
                return None, None
        return path, lstat(path)

    def _of_process(self, pid: int, name: str) -> str | None:
        """A name below /proc, which is by the number that a process has where it runs. None for one that leads to a pipe."""
        words = name.split("/", 3)
        if len(words) < 4:
            return None
        if words[2] in ("self", "thread-self"):
            name = f"/proc/{pid}/{words[3]}"
        elif words[2].isdigit():
            name = f"/proc/{pid}/root{name}"
        inside = words[3].split("/")
        if "fd" in inside[:-2] or "cwd" in inside[:-1] or "root" in inside[:-1]:  # out of /proc again
            return self._canonical(name)
        if inside[-2:-1] == ["fd"] and not os.readlink(name).startswith("/"):
            return None
        return name

    def process(self, pid: int, other: int) -> int:
        """The number here of a process that `pid` knows by the number `other`."""
        stat = proc.stat_of(other, f"/proc/{pid}/root/proc")
        return proc.pid_here(other, stat.start, os.stat(f"/proc/{pid}/ns/pid").st_ino) if stat is not None else 0

    def _absolute(self, pid: int, name: str) -> str | None:
        if name in _STREAMS:
            return self._of_process(pid, f"/proc/self/fd/{_STREAMS[name]}")
        if name.startswith("/dev/fd/"):
            return self._of_process(pid, f"/proc/self/fd/{name[8:]}")
        root = self._roots.get(pid)
        if root is None:
            root = self._roots[pid] = os.readlink(f"/proc/{pid}/root")
        return self._canonical(name if root == "/" else root + name)

    def _canonical(self, name: str) -> str | None:
        name = name.rstrip("/") or "/"
        parent, _, last = name.rpartition("/")
        if last in (".", ".."):
            return os.path.realpath(name)
        known = self._folders.get(parent)
        if known is None:
            try:
                fd = os.open(parent or "/", os.O_PATH | os.O_CLOEXEC)
            except OSError as error:
                if error.errno in EXHAUSTED:
                    raise
                return None
            known = os.readlink(f"/proc/self/fd/{fd}")
            os.close(fd)
            if not parent.startswith("/proc/"):
                self._folders[parent] = known
        return f"{known}/{last}" if known != "/" else f"/{last}"


def _link(pid: int, descriptor: int) -> str:
    """Leads to what is open, or to the working directory."""
    descriptor &= 0xFFFFFFFF
    return f"/proc/{pid}/cwd" if descriptor == _CWD else f"/proc/{pid}/fd/{descriptor}"


def masked_socket(pid: int, address: bytes, covered: tuple[str, ...]) -> str:
    """The path of a socket address, if a process listens there whom commands cannot reach; else nothing."""
    name = os.fsdecode(address[2:].split(b"\0")[0])
    path = os.path.realpath(name) if name.startswith("/") else ""
    try:
        if not path or not any(path == place or path.startswith(place + "/") for place in covered):
            return ""
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            return ""
        seen = lstat(f"/proc/{pid}/root{path}")
        return path if seen is None or not stat.S_ISSOCK(seen.st_mode) else ""
    except OSError:
        return ""

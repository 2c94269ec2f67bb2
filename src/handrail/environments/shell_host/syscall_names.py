"""What a system call that waits for an answer is about: names and structures in the memory of another process."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import stat
import struct
import sys
import time

from . import proc
from .journal_log import lstat, parent_of

_libc = ctypes.CDLL(None, use_errno=True)
_PAGE, _SHORT = 4096, 192
_MAX_NAME = 4096
_ENCODING = sys.getfilesystemencoding()
_CWD = 0xFFFFFF9C  # AT_FDCWD, as it is in a register
_CACHE_SECONDS = 1.0
_DELETED = " (deleted)"
_STREAMS = {"/dev/stdin": "0", "/dev/stdout": "1", "/dev/stderr": "2"}
_REPEATED = re.compile(rb"(?:/\.?(?=/))+")
_NO_NAMES = (b"", b".", b"..")
# Devices that a command writes to all the time, and that cannot be changed.
_QUIET = frozenset((b"/dev/null", b"/dev/tty", b"/dev/zero", b"/dev/full", b"/dev/ptmx"))


class Unreadable(Exception):
    """The process lets nobody look into its memory."""


class Elsewhere(Exception):
    """The process sees another folder under this path than we do: it has mounts of its own."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


_readv = _libc.process_vm_readv
_readv.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong]
_VECTORS = struct.Struct("=QQQQ")  # two of `struct iovec`: ours and theirs


class Memory:
    """Reads the memory of other processes, by the system call for it or by /proc where that is refused."""

    def __init__(self) -> None:
        self._buffer = (ctypes.c_char * _PAGE)()
        self._base = ctypes.addressof(self._buffer)
        self._vectors = bytearray(_VECTORS.size)
        self._vectors_anchor = (ctypes.c_char * _VECTORS.size).from_buffer(self._vectors)
        self._ours = ctypes.addressof(self._vectors_anchor)
        self._theirs = self._ours + _VECTORS.size // 2
        self._by_file = False

    def read(self, pid: int, address: int, size: int) -> bytes:
        """At most a page."""
        return ctypes.string_at(self._base, self._fill(pid, address, size))

    def _fill(self, pid: int, address: int, size: int) -> int:
        """Copy it to the buffer, and return how much there is."""
        if not self._by_file:
            _VECTORS.pack_into(self._vectors, 0, self._base, size, address, size)
            count: int = _readv(pid, self._ours, 1, self._theirs, 1, 0)
            if count >= 0:
                return count
            if ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS):
                raise OSError(ctypes.get_errno(), "its memory is gone")
        content = self._read_file(pid, address, size)
        if size and not content:
            raise OSError(errno.EFAULT, "its memory is gone")
        self._by_file = True
        ctypes.memmove(self._base, content, len(content))
        return len(content)

    def name(self, pid: int, address: int) -> bytes:
        """A text that ends with NUL. Never over the end of a page: the next one may not exist."""
        found = b""
        while len(found) < _MAX_NAME:
            at = address + len(found)
            # Most names are short, and less to copy is faster.
            count = self._fill(pid, at, min(_PAGE - (at & (_PAGE - 1)), _PAGE if found else _SHORT))
            piece = self._buffer.value  # up to a NUL, which may be a later one than was read
            if len(piece) < count:
                return found + piece
            found += piece[:count]
        raise OSError(errno.ENAMETOOLONG, "the name is too long")

    @staticmethod
    def _read_file(pid: int, address: int, size: int) -> bytes:
        try:
            with open(f"/proc/{pid}/mem", "rb", 0) as file:
                return os.pread(file.fileno(), size, address)
        except PermissionError:
            raise Unreadable from None


class Names:
    """Turns names of other processes into canonical paths, with the last part not followed."""

    def __init__(self) -> None:
        self.memory = Memory()
        self._folders: dict[str, str] = {}
        self._roots: dict[int, str] = {}
        self._checked: set[tuple[int, str]] = set()  # process, and a folder that it sees as we do
        self._since = 0.0

    def forget(self) -> None:
        """Folders or links have changed, or a process has changed its root."""
        self._folders.clear()
        self._roots.clear()
        self._checked.clear()

    def path(self, pid: int, folder: int, address: int) -> str | None:
        """None for what cannot be changed, or does not exist: the system call itself will tell. Raises Elsewhere."""
        raw = self.memory.name(pid, address)
        if b"/" in raw or raw in _NO_NAMES:
            path = self._path(pid, folder, raw)
        else:
            base, name = self.folder(pid, folder), raw.decode(_ENCODING, "surrogateescape")
            path = f"{base}/{name}" if base != "/" else f"/{name}"
            if (pid, base) in self._checked:
                return path
        return path if path is None or path.startswith("/proc/") or self._has_folder(pid, path) else None

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

    def _path(self, pid: int, folder: int, raw: bytes) -> str | None:
        """Of a name with a slash in it, or of a folder itself."""
        if raw in _QUIET:
            return None
        if b"//" in raw or b"/./" in raw:
            raw = _REPEATED.sub(b"", raw)
        name = raw.decode(_ENCODING, "surrogateescape")
        if name.startswith("/proc/"):
            return self._of_process(pid, name)
        if not name:
            return self.of_descriptor(pid, folder)
        if name[0] == "/":
            return self._absolute(pid, name)
        base = self.folder(pid, folder)
        # Only the kernel knows what is above a folder that is gone.
        return self._canonical(f"{base if not base.endswith(_DELETED) else _link(pid, folder)}/{name}")

    def folder(self, pid: int, descriptor: int) -> str:
        try:
            return os.readlink(_link(pid, descriptor))
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
        now = time.monotonic()
        if now > self._since + _CACHE_SECONDS:  # somebody else may have changed folders and links
            self._folders.clear()
            self._checked.clear()
            self._since = now
        known = self._folders.get(parent)
        if known is None:
            try:
                fd = os.open(parent or "/", os.O_PATH | os.O_CLOEXEC)
            except OSError:
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

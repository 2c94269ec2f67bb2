"""The journal on disk: one entry per change, appended before the change is let through.

Each writer (a shell supervisor, a job supervisor, a process with file tools) appends to a log of its own, so that none waits for
another. A log is named by the first call in it, so that later calls are found without reading everything:

    <journal>/<first call>-<writer>.log    the entries
    <journal>/<first call>-<writer>.open   there until every call in the log has ended; names the process that ends last of
                                           those that make the changes
    <journal>/stash/                       what was deleted or replaced, see `stash`

An entry is a head (length, checksum, call, time, kind, lengths of the parts), two names, the attributes of the file before the
change, its extended attributes, and data. An entry that was cut short is ignored: its change was never let through.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import mmap
import os
import struct
import sys
import time
import zlib
from itertools import chain
from typing import Iterable, Iterator, NamedTuple  # noqa: UP035  Python 3.8 knows no other place

from . import proc

ABSENT = b"A"  # nothing was there; the inode number is that of the file that a hard link is made to
CONTENT = b"C"  # the content, as data or in the stash
GROWN = b"G"  # the size of a file that is only appended to
STASHED = b"S"  # a name that is removed or replaced; the file itself is in the stash
FOLDER = b"D"  # a folder that is removed
SYMLINK = b"L"  # a symbolic link that could not be stashed; its target is the data
ATTRIBUTES = b"M"
RENAME = b"R"  # from the first name to the second
EXCHANGE = b"X"
TIMES = b"T"  # of a folder that gets or loses a name, or of a file that gets a name in a new folder
REMADE = b"I"  # an undo made a file or folder anew; the data is its new inode number
UNSAVED = b"U"  # could not be kept; the data says why
HOST = b"H"  # a host was contacted; the name is its address
UNDOES = b"O"  # the call takes back another, whose number is the data; the name is the part of it, or empty
LEFT = b"P"  # processes that the call has left running: the boot, then process and start time of each
ROLLED_BACK = b"B"  # the call was interrupted and taken back
END = b"E"  # the call has ended, at the modification time of this entry
SUFFIX, OPEN_SUFFIX = ".log", ".open"
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)  # the last if a folder above has become a link to itself
ROTATE_BYTES = 16 << 20
_HEAD = struct.Struct("<IIQQcHHI")
_CHECKED = struct.Struct("<QQcHHI")  # the head after length and checksum: call, time, kind, lengths of the parts
_META = struct.Struct("<QIIIqqq")
_FRAME = struct.Struct("<II")
_PREFIX = _FRAME.size
# By their own names: looking them up takes a noticeable part of what an entry costs.
_now, _CLOCK, _checksum = time.clock_gettime_ns, time.CLOCK_BOOTTIME, zlib.crc32
_ENCODING, _ERRORS = sys.getfilesystemencoding(), "surrogateescape"


class Meta(NamedTuple):
    """The attributes of a file as they were."""

    inode: int = 0
    mode: int = 0
    owner: int = 0
    group: int = 0
    mtime: int = 0
    atime: int = 0
    size: int = 0


NO_META = Meta()


def meta_of(found: os.stat_result) -> Meta:
    return Meta(
        found.st_ino, found.st_mode, found.st_uid, found.st_gid, found.st_mtime_ns, found.st_atime_ns, found.st_size
    )


class Entry(NamedTuple):
    """`time` is that of the clock that runs since boot, and orders the entries of several writers."""

    call: int
    kind: bytes
    path: str
    second: str = ""
    meta: Meta = NO_META
    extended: bytes = b""
    data: bytes = b""
    time: int = 0
    place: tuple[str, int, int] = ("", 0, 0)  # where a content is: log, offset and length

    def content(self) -> bytes:
        """The data, which for a content is read from its log: a journal does not fit into memory."""
        log, offset, length = self.place
        if not log:
            return self.data
        with open(log, "rb") as file:
            file.seek(offset)
            return file.read(length)


def encode(
    call: int, kind: bytes, path: str, second: str = "", meta: Meta = NO_META, extended: bytes = b"", data: bytes = b""
) -> bytes:
    names, second_name = path.encode(_ENCODING, _ERRORS), second.encode(_ENCODING, _ERRORS)
    now = _now(_CLOCK)
    checked = _CHECKED.pack(call, now, kind, len(names), len(second_name), len(extended))
    body = b"".join((checked, names, second_name, _META.pack(*meta), extended, data))
    return _FRAME.pack(len(body), _checksum(body)) + body


class JournalFailed(Exception):
    """An entry could not be written, so the change must not happen. `errno` says why, as of a system call."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"the journal cannot be written: {error.strerror}")
        self.errno = error.errno or errno.EIO


class Damaged(Exception):
    """A log is not what its writer wrote. The message names it."""


_count = itertools.count(1)


def writer_name() -> str:
    """A new name for a writer of this process, never used before."""
    mine = proc.stat_of(os.getpid())
    return f"{os.getpid()}.{mine.start if mine is not None else 0}.{next(_count)}"


def processes(found: Iterable[tuple[int, int]]) -> bytes:
    """Processes by number and start time, of this boot."""
    return " ".join([proc.boot_id(), *(f"{pid}.{start}" for pid, start in found)]).encode()


def is_any_alive(found: bytes) -> bool:
    boot, *rest = found.split() or [b""]
    return boot == proc.boot_id().encode() and any(proc.is_alive(*map(int, one.split(b"."))) for one in rest)


class LogWriter:
    """Appends entries. `name` is the writer's: see `writer_name`."""

    def __init__(self, journal: str, name: str) -> None:
        self.journal, self._name = journal, name
        self._fd = -1
        self._bytes, self._makers = 0, b""
        self._unended: set[int] = set()
        self.path = ""

    def write(self, call: int, kind: bytes, content: bytes) -> None:
        """Append an encoded entry."""
        try:
            if self._fd < 0:
                self._open(call)
            count = os.write(self._fd, content)
            if count != len(content):
                os.ftruncate(self._fd, os.fstat(self._fd).st_size - count)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise JournalFailed(error) from None
        if kind == END:
            self._unended.discard(call)
        else:
            self._unended.add(call)
        self._bytes += len(content)

    def made_by(self, makers: bytes) -> None:
        """`processes` that end after all that make the changes."""
        self._makers = makers
        if self._fd >= 0:
            self._mark()

    def rotate(self) -> None:
        """Called between two calls, so that a log of many calls can be removed when they have expired."""
        if self._bytes > ROTATE_BYTES and not self._unended:
            self.close()

    def sync(self) -> None:
        """Make the entries survive a loss of power."""
        if self._fd >= 0:
            os.fdatasync(self._fd)

    def close(self) -> None:
        if self._fd >= 0:
            if not self._unended:
                with contextlib.suppress(OSError):  # somebody has cleared the folder
                    os.unlink(self.path[: -len(SUFFIX)] + OPEN_SUFFIX)
            os.close(self._fd)
        self._fd, self._bytes = -1, 0

    def _open(self, call: int) -> None:
        os.makedirs(self.journal, mode=0o700, exist_ok=True)
        self.path = os.path.join(self.journal, f"{call}-{self._name}{SUFFIX}")
        self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_APPEND, 0o600)
        # As long as somebody writes to it, a log does not expire. Before the mark is made: what has one and no lock was left.
        fcntl.flock(self._fd, fcntl.LOCK_SH)
        self._mark()

    def _mark(self) -> None:
        fd = os.open(self.path[: -len(SUFFIX)] + OPEN_SUFFIX, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as file:
            file.write(self._makers)


class Log:
    """A log as it is read: once, and then only what was added."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.calls: dict[int, list[Entry]] = {}
        self.ends: dict[int, int] = {}
        self.rolled_back: set[int] = set()
        self.undoes: dict[int, list[tuple[int, str]]] = {}  # by call: another call, and the part of it or nothing
        self.remade: list[tuple[int, int]] = []
        self.left: dict[int, list[bytes]] = {}  # by call: what it has left running
        self._offset = 0

    def read(self) -> None:
        with open(self.path, "rb") as file:
            if os.fstat(file.fileno()).st_size <= self._offset:
                return
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                for entry in self._decode(content):
                    self._take(entry)

    def cut(self) -> None:
        """Remove what is not a whole entry at the end."""
        if os.stat(self.path).st_size > self._offset:
            os.truncate(self.path, self._offset)
            self.read()

    def _take(self, entry: Entry) -> None:
        if entry.kind == END:
            self.ends[entry.call] = entry.meta.mtime
        elif entry.kind == ROLLED_BACK:
            self.rolled_back.add(entry.call)
        elif entry.kind == UNDOES:
            self.undoes.setdefault(entry.call, []).append((int(entry.data), entry.path))
        elif entry.kind == REMADE:
            self.remade.append((entry.meta.inode, int(entry.data)))
        elif entry.kind == LEFT:
            self.left.setdefault(entry.call, []).append(entry.data)
        else:
            self.calls.setdefault(entry.call, []).append(entry)

    def _decode(self, content: mmap.mmap) -> Iterator[Entry]:
        while self._offset + _HEAD.size <= len(content):
            length, checksum, call, when, kind, first, second, extended = _HEAD.unpack_from(content, self._offset)
            start = self._offset + _PREFIX
            if start + length > len(content):
                return
            body = content[start : start + length]
            if zlib.crc32(body) != checksum:
                raise Damaged(f"the journal {self.path} is damaged at byte {self._offset}")
            names = _CHECKED.size
            at = names + first + second + _META.size
            path, other = os.fsdecode(body[names : names + first]), os.fsdecode(body[names + first : at - _META.size])
            meta = Meta(*_META.unpack_from(body, at - _META.size))
            data, place = body[at + extended :], ("", 0, 0)
            if kind == CONTENT:
                data, place = b"", (self.path, start + at + extended, len(data))
            yield Entry(call, kind, path, other, meta, body[at : at + extended], data, when, place)
            self._offset = start + length


class Journal:
    """All logs of a journal, as one."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._logs: dict[str, Log] = {}

    def refresh(self, since: float = 0.0) -> None:
        """Read what was added, in logs that were written to since then."""
        logs = [name for name in names_in(self.folder) if name.endswith(SUFFIX) and name.partition("-")[0].isdigit()]
        found = ((name, lstat(os.path.join(self.folder, name))) for name in logs)
        names = [name for name, there in found if there is not None and there.st_mtime >= since]
        for name in [name for name in self._logs if name not in names]:
            del self._logs[name]
        for name in names:
            log = self._logs.setdefault(name, Log(os.path.join(self.folder, name)))
            try:
                log.read()
            except FileNotFoundError:  # it has just expired
                del self._logs[name]

    def entries(self, call: int) -> list[Entry]:
        found = [log.calls[call] for log in self._logs.values() if call in log.calls]
        return found[0] if len(found) == 1 else sorted(chain(*found), key=lambda entry: entry.time)

    def calls(self) -> list[int]:
        return sorted({call for log in self._logs.values() for call in log.calls})

    def unended_in(self, name: str) -> set[int]:
        """The calls that a log has changes of, but no end."""
        found = self._logs.get(name)
        return set(found.calls) - set(found.ends) if found is not None else set()

    def complete(self, name: str, entries: list[bytes]) -> None:
        """Append to a log whose writer is gone. An entry that it had half written is removed: its change never happened."""
        self._logs[name].cut()
        with open(os.path.join(self.folder, name), "ab") as file:
            file.write(b"".join(entries))

    def calls_in(self, name: str) -> set[int]:
        found = self._logs.get(name)
        return {*found.calls, *found.ends} if found is not None else set()

    def end(self, call: int) -> int | None:
        """When the call ended, in nanoseconds. None if a writer has not ended it."""
        ends = [log.ends.get(call) for log in self._logs.values() if call in log.calls or call in log.ends]
        ended = [end for end in ends if end is not None]
        is_whole = len(ended) == len(ends) or any(call in log.rolled_back for log in self._logs.values())
        return max(ended) if ended and is_whole else None

    def is_running(self, call: int) -> bool:
        """Whether something that the call has left is still there."""
        return any(is_any_alive(left) for log in self._logs.values() for left in log.left.get(call, ()))

    def is_reverted(self, call: int, since: int) -> bool:
        """Whether nothing is left of what was done since another call: it was taken back, or has taken back something later."""
        if self.is_rolled_back(call) or self.is_undone(call):
            return True
        return any(target > since and self.is_undone(target) for target, only in self.undoes(call) if not only)

    def is_rolled_back(self, call: int) -> bool:
        """Whether the call was interrupted and taken back."""
        return any(call in log.rolled_back for log in self._logs.values())

    def is_undone(self, call: int) -> bool:
        """Whether it was taken back as a whole. An undo that was itself undone does not count."""
        undone_by = max((by for by, only in self._undos_of(call) if not only), default=0)
        return undone_by > 0 and not self.is_undone(undone_by)

    def undone_by(self, call: int) -> int:
        """The last undo that still holds, of the call or of a part of it, or 0."""
        return max((by for by, _ in self._undos_of(call) if not self.is_undone(by)), default=0)

    def undone_parts(self, call: int) -> set[str]:
        """The paths at which the call was taken back, and still is."""
        return {only for by, only in self._undos_of(call) if only and not self.is_undone(by)}

    def remade(self) -> dict[int, set[int]]:
        """The new inode numbers by the old one, for what undos have made anew. Several: the system gives numbers again."""
        found: dict[int, set[int]] = {}
        for old, new in chain(*(log.remade for log in self._logs.values())):
            found.setdefault(old, set()).add(new)
        return found

    def _undos_of(self, call: int) -> Iterator[tuple[int, str]]:
        for log in self._logs.values():
            yield from ((by, only) for by, pairs in log.undoes.items() for target, only in pairs if target == call)

    def undoes(self, call: int) -> list[tuple[int, str]]:
        """What the call takes back: other calls, each with the part of it, or nothing."""
        return [pair for log in self._logs.values() for pair in log.undoes.get(call, ())]


def names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def parent_of(path: str) -> str:
    """The folder of a canonical path: a third of the time of os.path.dirname."""
    return path[: path.rfind("/")] or "/"


def lstat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError as error:
        if error.errno not in _NOT_THERE:
            raise
        return None

"""What the judge may look up on the disk of a task's environment: this machine's files, or those of one elsewhere that is up."""

from __future__ import annotations

import os
import stat
import struct
import time
from collections import OrderedDict
from collections.abc import Callable, Container, Sequence
from typing import TypeVar

from ..errors import HandrailError
from ..judge.values.disk import DiskEntry, ShellMemory
from ..protocols import Action, Files

T = TypeVar("T")
# What there was at each path; for one that ends with a NUL, of the folder there when its entries last changed.
Lookups = dict[str, object]

_MAX_KEPT_BYTES, _MAX_INDEX_BYTES = 4 << 20, 16 << 20
_MAX_SECONDS, _MAX_NAMES, _MAX_WRITTEN, _MAX_SHELLS = 1.0, 2000, 20_000, 1000
# What was written shortly before the gate was opened may come from the same work: one process per call is usual.
BEFORE_SECONDS = 3600
_INDEX_ENTRY = struct.Struct(">10I")
_INDEX_FIXED = 62
# The system's clock for files ticks every few milliseconds: what has just changed may change again without another time.
_UNSETTLED_NANOSECONDS = 100_000_000


class ReadCache:
    """Contents by path and version, the least used of them dropped first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[object, ...], bytes] = OrderedDict()
        self._bytes = 0

    def get(self, key: tuple[object, ...], read: Callable[[], bytes | None]) -> bytes | None:
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
            return found
        found = read()
        if found is not None and len(found) < _MAX_KEPT_BYTES // 4:
            self._kept[key] = found
            self._bytes += len(found)
            while self._bytes > _MAX_KEPT_BYTES:
                self._bytes -= len(self._kept.popitem(last=False)[1])
        return found


class TaskDisks:
    """The disk of each action's environment, with what all judgements of a gate share: when it began, and what was written. An
    action says in its details where its files are: `files` is "host" for this machine, or the files of an environment that is
    up. Without it nothing is looked up."""

    def __init__(self, renamed: Callable[[str], str] | None = None) -> None:
        self._since = time.time() - BEFORE_SECONDS
        self._renamed = renamed
        self._cache = ReadCache()
        self._written: set[str] = set()
        self._shells: OrderedDict[str, ShellMemory] = OrderedDict()

    def shell(self, task: str) -> ShellMemory:
        """What earlier commands left in the shell of a task."""
        found = self._shells.get(task) or self._shells.setdefault(task, ShellMemory())
        self._shells.move_to_end(task)
        if len(self._shells) > _MAX_SHELLS:
            self._shells.popitem(last=False)
        return found

    def of(self, action: Action) -> HostDisk | RemoteDisk | None:
        files = action.details.get("files")
        if files is None:
            return None
        if files == "host":
            return HostDisk(self._since, cache=self._cache, written=self._written, renamed=self._renamed)
        return RemoteDisk(files, written=self._written)

    def note_written(self, action: Action) -> None:
        """A file that an agent writes by a tool."""
        if len(self._written) < _MAX_WRITTEN:
            path = os.path.join(action.cwd or os.getcwd(), os.path.expanduser(action.text))
            self._written.add(os.path.realpath(path))


class HostDisk:
    """The files of this machine. What changed after `since` is new, unless git's index has exactly this state of it. `written`
    are paths that agents have written by a tool: they are new whatever the index says. `renamed` gives each text with
    Handrail's own folders under the name that the rules know."""

    def __init__(
        self,
        since: float,
        *,
        cache: ReadCache | None = None,
        written: Container[str] = (),
        renamed: Callable[[str], str] | None = None,
    ) -> None:
        self._since = since
        self._cache = cache or ReadCache()
        self._written = written
        self._renamed = renamed
        self.lookups: Lookups | None = {}  # None: more was looked at than what there is at some paths

    def find(self, path: str) -> DiskEntry | None:
        found = self._find(path)
        if self.lookups is not None:
            self.lookups[path] = found
        return found

    def _find(self, path: str) -> DiskEntry | None:
        place = os.path.expanduser(path) if path.startswith("~") else path
        try:
            found = os.stat(place)
        except (OSError, ValueError):
            return None
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            return None
        real = os.path.realpath(place) if os.path.islink(place) else place
        is_dir = stat.S_ISDIR(found.st_mode)
        changed = found.st_ctime >= self._since and not is_dir
        is_new = changed and (real in self._written or not self._is_in_index(real, found))
        return DiskEntry(real, is_dir, found.st_size, is_new)

    def read(self, path: str, max_bytes: int) -> bytes | None:
        self.lookups = None
        try:
            # Without O_NONBLOCK, opening a FIFO would wait for a writer.
            fd = os.open(os.path.expanduser(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        except (OSError, ValueError):
            return None
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                return None
            key = (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size, max_bytes)
            data = self._cache.get(key, lambda: _all(fd, max_bytes))
        except OSError:
            return None
        finally:
            os.close(fd)
        if data is None or self._renamed is None or b"\0" in data[:4096]:
            return data
        text = data.decode("utf-8", "surrogateescape")
        renamed = self._renamed(text)
        return data if renamed is text else renamed.encode("utf-8", "surrogateescape")

    def names(self, path: str) -> Sequence[str]:
        if self.lookups is not None:
            stamp = self.lookups[f"{path}\0"] = self._folder_stamp(path)
            if stamp is not None and stamp[0] > time.time_ns() - _UNSETTLED_NANOSECONDS:
                self.lookups = None
        try:
            with os.scandir(os.path.expanduser(path)) as found:
                return [entry.name for entry, _ in zip(found, range(_MAX_NAMES), strict=False)]
        except (OSError, ValueError):
            return ()

    def holds(self, lookups: Lookups) -> bool:
        """Whether all of it is still so."""
        now = [self._folder_stamp(path[:-1]) if path.endswith("\0") else self._find(path) for path in lookups]
        return now == list(lookups.values())

    def _folder_stamp(self, path: str) -> tuple[int, int, int] | None:
        try:
            found = os.stat(os.path.expanduser(path))
        except (OSError, ValueError):
            return None
        return found.st_ctime_ns, found.st_ino, found.st_dev  # the other times can be set

    def _is_older(self, git: str, digest: str) -> bool:
        """Whether git had this content before: what `git add` stores now is a new object, and no proof of anything."""
        loose = os.path.join(git, "objects", digest[:2], digest[2:])
        if os.path.exists(loose):
            return self._changed_before(loose)
        packs = os.path.join(git, "objects", "pack")
        if any(self._changed_before(os.path.join(packs, name)) for name in self.names(packs)):
            return True
        return b"\tclone: from " in (self.read(os.path.join(git, "logs", "HEAD"), 4096) or b"").partition(b"\n")[0]

    def _changed_before(self, path: str) -> bool:
        try:
            return os.stat(path).st_ctime < self._since
        except OSError:
            return False

    def _is_in_index(self, path: str, found: os.stat_result) -> bool:
        """Whether git had this state of the file before this session: then it came with the repository."""
        folder = os.path.dirname(path)
        while folder not in ("/", ""):
            index = os.path.join(folder, ".git", "index")
            if os.path.exists(index):
                data = self.read(index, _MAX_INDEX_BYTES) or b""
                digest = _index_entry(data, os.path.relpath(path, folder), found)
                return digest != "" and self._is_older(os.path.join(folder, ".git"), digest)
            folder = os.path.dirname(folder)
        return False


class RemoteDisk:
    """The files of an environment elsewhere, for one judgement: after a second nothing more is looked up."""

    def __init__(
        self, files: Files, *, written: Container[str] = (), clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._files, self._written = files, written
        self._clock = clock
        self._ends = clock() + _MAX_SECONDS
        self._found: dict[str, DiskEntry | None] = {}
        self.lookups: Lookups | None = {}  # None: something was looked at, which would take too long to repeat

    def holds(self, lookups: Lookups) -> bool:
        return not lookups

    def find(self, path: str) -> DiskEntry | None:
        if path not in self._found:
            self._found[path] = self._asked(lambda: self._find(path), None)
        return self._found[path]

    def _find(self, path: str) -> DiskEntry | None:
        found = self._files.stat(path)
        if found is None or not (found.is_dir or stat.S_ISREG(found.mode)):
            return None
        real = self._files.resolve(path)
        # Its clock is not ours, so what no tool wrote counts as the project's own.
        return DiskEntry(real, found.is_dir, found.size, real in self._written)

    def read(self, path: str, max_bytes: int) -> bytes | None:
        found: bytes | None = self._asked(lambda: self._files.read(path, max_bytes=max_bytes), b"")
        return found or None

    def names(self, path: str) -> Sequence[str]:
        return self._asked(lambda: [entry.name for entry in self._files.entries(path)][:_MAX_NAMES], [])

    def _asked(self, ask: Callable[[], T], otherwise: T) -> T:
        self.lookups = None
        if self._clock() >= self._ends:
            return otherwise
        try:
            return ask()
        except HandrailError:  # not there, not allowed, or not up any more
            return otherwise


def _all(fd: int, max_bytes: int) -> bytes:
    pieces = []
    while max_bytes > 0 and (piece := os.read(fd, min(max_bytes, 1 << 20))):
        pieces.append(piece)
        max_bytes -= len(piece)
    return b"".join(pieces)


def _index_entry(data: bytes, name: str, found: os.stat_result) -> str:
    """The object of the entry in git's index (versions 2 and 3) with this file's name, size and time of change; else empty."""
    if data[:4] != b"DIRC" or data[7:8] not in (b"\2", b"\3"):
        return ""
    encoded = os.fsencode(name) + b"\0"
    wanted = int(found.st_mtime), found.st_size & 0xFFFFFFFF, found.st_ino & 0xFFFFFFFF
    place = data.find(encoded)
    while place >= 0:
        for fixed in (_INDEX_FIXED, _INDEX_FIXED + 2):  # with flags of version 3
            start = place - fixed
            if start >= 12:
                _, _, seconds, nanoseconds, _, inode, _, _, _, size = _INDEX_ENTRY.unpack_from(data, start)
                if (seconds, size, inode) == wanted:
                    same = nanoseconds in (0, found.st_mtime_ns % 1_000_000_000)
                    return data[start + 40 : start + 60].hex() if same else ""
        place = data.find(encoded, place + 1)
    return ""

"""What a call is about to change, written to the journal before it does. The effect watcher reports system calls here, and file
tools what they are about to do. Paths are canonical, but for their last part, which may be a symbolic link. What a call has
made itself needs no entry: a new tree of 20,000 files is one."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
import threading
import time
from typing import TYPE_CHECKING, Callable, Iterable, Iterator  # noqa: UP035  Python 3.8 knows no other place

from . import journal_log as log
from .journal_log import LogWriter, Meta, lstat, meta_of, parent_of, writer_name

if TYPE_CHECKING:
    from .deletion_limit import DeletionLimit

STASH = ".handrail-undo"
MAX_INLINE_BYTES, MAX_COPY_BYTES = 64 << 10, 1 << 30
_MAX_CALLS = 16
_FICLONE = 0x40049409
# What is known of a path in a call, so that it needs no further entry.
_NEW, _SAVED, _GROWN, _MOVED, _MARKED = "new", "saved", "grown", "moved", "marked"


class Stash:
    """Where the files are kept that a call deletes or replaces: on their own file system, so that keeping one is a hard link.
    That of the journal's own file system lies in the journal. On another it lies in the topmost folder there that this user may
    write to, in a folder that only this user can enter, and that git ignores. `writer` makes names unique among processes."""

    def __init__(self, journal: str, writer: str) -> None:
        self._journal, self._writer = os.path.realpath(journal), writer
        self.folder = os.path.join(self._journal, "stash")
        self._folders: dict[int, str] = {}  # by device
        self._count, self._mark = 0, f"/{STASH}-"

    def keep(self, path: str, device: int) -> str:
        """Link the file or symbolic link, which is on this device, into the stash. Returns its path there; raises OSError."""
        to = self._free_name(path, device)
        os.link(path, to, follow_symlinks=False)
        return to

    def new_name(self, path: str) -> str:
        """A free name on the file system of `path`, for something that is moved or copied there."""
        return self._free_name(path, os.stat(os.path.dirname(path) or "/").st_dev)

    def holds(self, path: str) -> bool:
        """Whether the path lies in the journal or in a stash, where no command has any business."""
        return self._mark in path or path.startswith(self._journal)

    def _free_name(self, path: str, device: int) -> str:
        folder = self._folders.get(device)
        if folder is None:
            folder = self._folders[device] = self._folder_for(os.path.dirname(path) or "/", device)
        self._count += 1
        return f"{folder}/{self._writer}-{self._count}"

    def _folder_for(self, folder: str, device: int) -> str:
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        if os.stat(self.folder).st_dev == device:
            return self.folder
        topmost = folder
        while folder != "/":
            folder = os.path.dirname(folder)
            if os.stat(folder).st_dev != device:
                break
            if os.access(folder, os.W_OK | os.X_OK):
                topmost = folder
        return _private(os.path.join(topmost, f"{STASH}-{os.geteuid()}"))


def _private(folder: str) -> str:
    """Make the folder, or check that it is ours: in /tmp anyone may have made it."""
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        found = os.lstat(folder)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise PermissionError(1, "it belongs to another user", folder) from None
    with contextlib.suppress(FileExistsError), open(os.path.join(folder, ".gitignore"), "x") as file:
        file.write("*\n")
    return folder


class CallJournal:
    """The entries of one call, as one process writes them. Each method is called before the change."""

    def __init__(self, writer: LogWriter, stash: Stash, call: int, *, max_copy_bytes: int = MAX_COPY_BYTES) -> None:
        self.call = call
        self._writer, self._stash, self._max_copy_bytes = writer, stash, max_copy_bytes
        self._known: dict[str, str] = {}
        self._moved: set[str] = set()  # what came by a rename or link is older than the new folder that it may be in
        self._timed: set[str] = set()  # folders whose times are saved
        self.is_ended = self.is_incomplete = False
        self.limit: DeletionLimit | None = None
        self.is_tried = False  # its connections wait for an answer

    def create(self, path: str, *, is_folder: bool = False, link_to: int = 0) -> None:
        """Nothing is there. `link_to` is the inode number of the file that a hard link is made to."""
        if not self.is_new(path):
            self.folder_times(parent_of(path))
            self._write(log.ABSENT, path, meta=Meta(link_to))
            self._known[path] = _NEW
        elif is_folder:
            self._known[path] = _NEW
        elif link_to:  # the times of the file change, and it may be older than the new folder
            self._write(log.TIMES, path, meta=Meta(link_to))
        if link_to:
            self._known[path] = _MOVED
            self._moved.add(path)

    def change(self, path: str, found: os.stat_result, *, only_grows: bool = False) -> None:
        """The content of a regular file."""
        known = self._known.get(path)
        if known == _SAVED or (only_grows and known == _GROWN) or self.is_new(path):
            return
        meta = meta_of(found)
        if only_grows:
            self._write(log.GROWN, path, meta=meta)
            self._known[path] = _GROWN
            return
        self._content(path, meta)
        self._known[path] = _SAVED

    def remove(self, path: str, found: os.stat_result) -> None:
        """A name is removed, or replaced by another file."""
        if self.is_new(path):
            return
        self.folder_times(parent_of(path))
        meta = meta_of(found)
        if stat.S_ISDIR(meta.mode):
            self._write(log.FOLDER, path, meta=meta, extended=extended_attributes(path))
        else:
            self._keep(path, meta, found.st_dev)
        self._known.pop(path, None)
        self._moved.discard(path)

    def attributes(self, path: str, found: os.stat_result) -> None:
        """Mode, owner, times or extended attributes."""
        if self._known.get(path) in (_SAVED, _MARKED) or self.is_new(path):
            return
        self._write(log.ATTRIBUTES, path, meta=meta_of(found), extended=extended_attributes(path))
        self._known.setdefault(path, _MARKED)

    def rename(
        self, path: str, found: os.stat_result, to: str, there: os.stat_result | None, *, exchange: bool = False
    ) -> None:
        """`there` is what has the new name already."""
        is_folder = stat.S_ISDIR(found.st_mode)
        has_older = is_folder and any(older.startswith(path + "/") for older in self._moved)
        if not exchange and self.is_new(path) and self.is_new(to) and not has_older:
            if is_folder:
                self._forget_below(path, to)
                self._known[path] = self._known[to] = _NEW
            return
        self.folder_times(parent_of(path))
        self.folder_times(parent_of(to))
        if there is not None and not exchange:
            self.remove(to, there)
        self._write(log.EXCHANGE if exchange else log.RENAME, path, to, meta=meta_of(found))
        if is_folder or (there is not None and stat.S_ISDIR(there.st_mode)):
            self._forget_below(path, to)
        self._known.pop(path, None)
        self._moved.discard(path)
        for name in (to, path) if exchange else (to,):
            self._known[name] = _MOVED
            self._moved.add(name)

    def move_away(self, path: str, found: os.stat_result) -> str:
        """A folder is deleted with all that is in it, by moving it to the path that is returned."""
        kept = self._stash.new_name(path)
        self.rename(path, found, kept, None)
        return kept

    def replace(self, path: str) -> None:
        """A new file is renamed over `path`, and folders that are missing are made for it."""
        found, missing = lstat(path), path
        if found is not None:
            self.remove(path, found)
        while found is None and missing != "/" and lstat(parent_of(missing)) is None:
            missing = parent_of(missing)
        self.create(missing, is_folder=missing != path)

    def folder_times(self, folder: str) -> None:
        """The times of a folder that is about to get or lose a name."""
        if folder in self._timed or self._known.get(folder) == _NEW:
            return
        self._timed.add(folder)
        with contextlib.suppress(OSError):  # then the system call fails as well
            self._write(log.TIMES, folder, meta=meta_of(os.lstat(folder)))

    def unseen(self, path: str, reason: str) -> None:
        """Something may change that cannot be kept."""
        self._write(log.UNSAVED, path, data=reason.encode())

    def host(self, address: str) -> None:
        if self._known.get(address) is None:
            self._known[address] = _SAVED
            self._write(log.HOST, address)

    def left(self, processes: Iterable[tuple[int, int]]) -> None:
        """It ends here, and leaves these running, each with its start time."""
        self._write(log.LEFT, "", data=log.processes(processes))
        self.end()

    def undoes(self, call: int, only: str = "") -> None:
        """This call takes back another, or the part of it that is at `only`."""
        self._write(log.UNDOES, only, data=b"%d" % call)

    def remade(self, old_inode: int, path: str) -> None:
        """An undo has made `path` anew: older entries are about it all the same."""
        new = os.lstat(path).st_ino
        if new != old_inode:
            self._write(log.REMADE, path, meta=Meta(old_inode), data=b"%d" % new)

    def end(self) -> None:
        """Only the process that let every change through can tell that the call is complete."""
        self.is_ended = True
        if self.is_incomplete:
            self._write(log.END, "", meta=Meta(mtime=time.time_ns()))
            self.is_incomplete = False

    def is_new(self, path: str) -> bool:
        """Whether this call made it. What is in a new folder is new, unless it was moved there."""
        known = self._known.get(path)
        return known == _NEW or (known is None and self._known.get(parent_of(path)) == _NEW)

    def grows(self, path: str) -> bool:
        """Whether only its size was saved, because it was only appended to."""
        return self._known.get(path) == _GROWN

    def _write(
        self,
        kind: bytes,
        path: str,
        second: str = "",
        meta: Meta = log.NO_META,
        extended: bytes = b"",
        data: bytes = b"",
    ) -> None:
        self._writer.write(self.call, kind, log.encode(self.call, kind, path, second, meta, extended, data))
        self.is_incomplete = True

    def _content(self, path: str, meta: Meta) -> None:
        if meta.size > self._max_copy_bytes:
            self.unseen(path, f"it has {meta.size:,} bytes, and copies are limited to {self._max_copy_bytes:,}")
            return
        extended = extended_attributes(path)
        try:
            if meta.size <= MAX_INLINE_BYTES:
                fd = _open_file(path)
                try:
                    data = os.read(fd, meta.size)
                finally:
                    os.close(fd)
                self._write(log.CONTENT, path, meta=meta, extended=extended, data=data)
            else:
                kept = self._stash.new_name(path)
                copy(path, kept, meta.size)
                self._write(log.CONTENT, path, kept, meta=meta, extended=extended)
        except OSError as error:
            self.unseen(path, f"it could not be read: {error.strerror}")

    def _keep(self, path: str, meta: Meta, device: int) -> None:
        try:
            kept = self._stash.keep(path, device)
        except OSError:  # a mount in between, or a file of another user
            if stat.S_ISREG(meta.mode):
                self._content(path, meta)
            elif stat.S_ISLNK(meta.mode):
                self._write(log.SYMLINK, path, meta=meta, data=os.fsencode(os.readlink(path)))
            else:
                self.unseen(path, "it is a device, a socket or a pipe, and could not be linked")
        else:
            self._write(log.STASHED, path, kept, meta=meta)

    def _forget_below(self, *folders: str) -> None:
        prefixes = tuple(folder + "/" for folder in folders)
        for path in [path for path in self._known if path.startswith(prefixes)]:
            del self._known[path]
            self._moved.discard(path)
        self._timed = {path for path in self._timed if path not in folders and not path.startswith(prefixes)}


class NotRecorded:
    """Stands for the entries of what nobody could undo: it runs on behalf of no call, or rolls one back."""

    is_ended = is_incomplete = False
    call, limit, is_tried = 0, None, False

    def __getattr__(self, _: str) -> Callable[..., None]:
        return lambda *_, **__: None


def copy(path: str, to: str, size: int) -> None:
    """Copy the content to a new file, sharing blocks where the file system can."""
    with open(_open_file(path), "rb", 0) as source:
        made = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(made, "wb", 0) as target:
            copy_content(source.fileno(), target.fileno(), size)


def _open_file(path: str) -> int:
    """Never waits: another process may have put a pipe in its place."""
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC)


def copy_content(source: int, target: int, size: int) -> None:
    """From the beginning of one open file to the beginning of another."""
    try:
        fcntl.ioctl(target, _FICLONE, source)
        return
    except OSError:
        pass  # most file systems cannot share blocks
    while count := os.sendfile(target, source, None, size):
        size -= count


def extended_attributes(path: str) -> bytes:
    """As JSON, empty if there are none. Access lists are among them."""
    try:
        names = os.listxattr(path, follow_symlinks=False)
        found = {name: os.getxattr(path, name, follow_symlinks=False).hex() for name in names}
    except OSError:
        return b""
    return json.dumps(found).encode() if found else b""


class FileJournal:
    """Threads may use it at the same time."""

    def __init__(self, folder: str, *, max_copy_bytes: int = MAX_COPY_BYTES, is_durable: bool = False) -> None:
        self._folder, self._max_copy_bytes, self._is_durable = folder, max_copy_bytes, is_durable
        self._lock = threading.Lock()
        self._writer: LogWriter | None = None
        self._stash, self._process = Stash(folder, ""), 0
        self._calls: dict[int, CallJournal] = {}

    def keep(self, call: int, path: str, *, is_replaced: bool) -> None:
        """Called before a file is replaced by a new one, or removed: it goes into the stash as it is."""
        with self._lock:
            journal, found = self._of(call), lstat(path)
            if is_replaced:
                journal.replace(path)
            elif found is not None:
                journal.remove(path, found)

    @contextlib.contextmanager
    def writing(self, call: int) -> Iterator[CallJournal]:
        """For several changes of a call."""
        with self._lock:
            yield self._of(call)

    def end(self, call: int) -> None:
        """Called after the last change."""
        with self._lock:
            journal = self._calls.get(call)
            if journal is None or self._writer is None:
                return
            journal.end()
            if self._is_durable:
                self._writer.sync()
            self._writer.rotate()
            while len(self._calls) > _MAX_CALLS:
                del self._calls[min(self._calls)]

    def close(self) -> None:
        with self._lock:
            if self._writer is not None and self._process == os.getpid():
                self._writer.close()
            self._writer = None

    def _of(self, call: int) -> CallJournal:
        if self._writer is None or self._process != os.getpid():
            name, self._process = writer_name(), os.getpid()
            self._writer, self._stash = LogWriter(self._folder, name), Stash(self._folder, name)
        if call not in self._calls:
            self._calls[call] = CallJournal(self._writer, self._stash, call, max_copy_bytes=self._max_copy_bytes)
        return self._calls[call]

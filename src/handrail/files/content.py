"""Load a file as it is now, to show or change it."""

import threading
from collections import OrderedDict
from enum import Enum
from typing import NamedTuple

from ..errors import FileMissing, FileTooLarge, IsFolder, ToolError, ToolFailed
from ..protocols import Files, FileStat
from .failures import binary_kind, shown, size_text, special_kind
from .text import Text, decode

MAX_REMEMBERED = 20_000


class Since(Enum):
    """What happened to a file since the task last read or wrote it."""

    UNREAD = "unread"
    SAME = "same"
    CHANGED = "changed"


class ReadTracker:
    """By task and resolved path. Content decides where it is known: touching a file does not change it."""

    def __init__(self, max_remembered: int = MAX_REMEMBERED) -> None:
        self._max = max_remembered
        self._known: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._lock = threading.Lock()

    def record(self, task_id: str | None, path: str, *, version: str, data: bytes | None) -> None:
        """`data` is None for a file too large to read completely; its version is compared then."""
        entry = _digest(version, data)
        with self._lock:
            self._known[task_id or "", path] = entry
            self._known.move_to_end((task_id or "", path))
            while len(self._known) > self._max:
                self._known.popitem(last=False)

    def since(self, task_id: str | None, path: str, *, version: str, data: bytes | None) -> Since:
        with self._lock:
            known = self._known.get((task_id or "", path))
        if known is None:
            return Since.UNREAD
        return Since.SAME if known == _digest(version, data) else Since.CHANGED

    def forget(self, task_id: str | None, path: str) -> None:
        with self._lock:
            self._known.pop((task_id or "", path), None)


reads = ReadTracker()


def _digest(version: str, data: bytes | None) -> str:
    """Changes with the content; of a file too large to be read, with its version."""
    from hashlib import blake2b  # a cold start reads no file

    return version if data is None else blake2b(data, digest_size=16).hexdigest()


class Current(NamedTuple):
    """A regular file. `data` is None when it is too large for one read; `text` is None then, or when it is not text."""

    path: str
    stat: FileStat
    data: bytes | None
    text: Text | None

    @property
    def digest(self) -> str:
        return _digest(self.stat.version, self.data)


def load(files: Files, path: str) -> Current | None:
    """The file at `path`, None when there is none. Raises ToolFailed for a folder, a device, a pipe."""
    resolved, found = _regular(files, path)
    if found is None:
        return None
    limit = files.max_read_bytes
    # Files under /proc have a size of 0: only reading on shows whether there is more.
    data = files.read(resolved, max_bytes=limit) if found.size <= limit else None
    if data is not None and len(data) >= limit and files.read(resolved, offset=limit, max_bytes=1):
        data = None
    return Current(resolved, found, data, None if data is None else decode(data))


def _regular(files: Files, path: str) -> tuple[str, FileStat | None]:
    """The resolved path, and what is there. Raises ToolFailed for a folder, a device, a pipe."""
    resolved = files.resolve(path)
    found = files.stat(resolved)
    if found is not None and found.is_dir:
        raise IsFolder(f"{shown(path)} is a folder. List what it holds with `search_files`.", path=shown(resolved))
    kind = special_kind(found.mode) if found is not None else None
    if kind is not None:
        raise ToolFailed(f"{shown(path)} is {kind}, not a regular file", path=shown(resolved), kind=kind)
    return resolved, found


def existing(files: Files, path: str) -> Current:
    """Like `load` for a file that must exist. Raises ToolFailed with similar names from its folder."""
    current = load(files, path)
    if current is None:
        raise missing(files, path)
    return current


def missing(files: Files, path: str) -> ToolFailed:
    """The error for a missing file, with similar names from its folder."""
    from difflib import get_close_matches  # only on the way to an error

    folder, _, name = files.resolve(path).rpartition("/")
    try:
        names = [entry.name for entry in files.entries(folder or "/")]
    except ToolError:
        return FileMissing(f"there is no {shown(path)}, and no folder {shown(folder)} either", path=shown(path))
    lower = {known.lower(): known for known in names}
    near = [shown(lower[match]) for match in get_close_matches(name.lower(), lower, n=5, cutoff=0.6)]
    hint = f"; similar names in that folder: {', '.join(near)}" if near else ""
    return FileMissing(f"there is no {shown(path)}{hint}", path=shown(path), **({"similar": near} if near else {}))


def editable(current: Current) -> Text:
    """The text of a file, to be changed in place. Raises ToolFailed when it has none."""
    if current.data is None:
        size = current.stat.size
        raise FileTooLarge(f"{shown(current.path)} is {size_text(size)}, too large to change in place", size=size)
    if current.text is None:
        raise not_text(current, current.data)
    return current.text


def not_text(current: Current, head: bytes) -> ToolFailed:
    path, kind, size = shown(current.path), binary_kind(head), current.stat.size
    return ToolFailed(f"{path} is not text: {kind}, {size_text(size)}", path=path, kind=kind, size=size)


def check_unchanged(reads: ReadTracker, task_id: str | None, current: Current) -> Since:
    """Refuse a file that was changed by another program or task since this task read it."""
    since = reads.since(task_id, current.path, version=current.stat.version, data=current.data)
    if since is Since.CHANGED:
        path, advice = shown(current.path), "read it again, then repeat the change"
        why = f"{path} was changed since you read it, and was left as it is; {advice}"
        raise ToolFailed(why, path=path, changed_since_read=True)
    return since


def read_bytes(files: Files, path: str, *, max_bytes: int) -> bytes:
    """Raises ToolFailed for a file that is missing, not regular, or larger than `max_bytes`."""
    resolved, found = _regular(files, path)
    if found is None:
        raise missing(files, path)
    pieces: list[bytes] = []
    size = 0
    while piece := files.read(resolved, offset=size, max_bytes=max_bytes + 1 - size):
        pieces.append(piece)
        size += len(piece)
        if size > max_bytes:
            why = f"{shown(path)} is {size_text(max(size, found.size))}; the limit is {size_text(max_bytes)}"
            raise FileTooLarge(why, size=found.size)
    return b"".join(pieces)

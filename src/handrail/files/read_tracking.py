"""Remember what each task has read of a file, to notice later changes by others."""

from __future__ import annotations

import threading
from collections import OrderedDict
from enum import Enum

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
        self._known: OrderedDict[tuple[str, str], tuple[str, bytes | None]] = OrderedDict()
        self._lock = threading.Lock()

    def record(self, task_id: str | None, path: str, *, version: str, data: bytes | None) -> None:
        """`data` is None for a file too large to read completely; its version is compared then."""
        entry = (version, None if data is None else _digest(data))
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
        known_version, known_digest = known
        if data is not None and known_digest is not None:
            same = known_digest == _digest(data)
        else:
            same = known_version == version
        return Since.SAME if same else Since.CHANGED

    def forget(self, task_id: str | None, path: str) -> None:
        with self._lock:
            self._known.pop((task_id or "", path), None)


reads = ReadTracker()


def _digest(data: bytes) -> bytes:
    from hashlib import blake2b  # a cold start reads no file

    return blake2b(data, digest_size=16).digest()

"""What the file tools of one process are about to change, written to the journal."""

from __future__ import annotations

import contextlib
import os
import threading
from typing import Iterator  # noqa: UP035  Python 3.8 knows no other place

from .journal import MAX_COPY_BYTES, CallJournal
from .journal_log import LogWriter, lstat, writer_name
from .stash import Stash

_MAX_CALLS = 16


class FileJournal:
    """Threads may use it at the same time."""

    def __init__(self, folder: str, *, max_copy_bytes: int = MAX_COPY_BYTES, is_durable: bool = False) -> None:
        self._folder, self._max_copy_bytes, self._is_durable = folder, max_copy_bytes, is_durable
        self._lock = threading.Lock()
        self._writer: LogWriter | None = None
        self._process = 0
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
            self._writer, self._process = LogWriter(self._folder, writer_name()), os.getpid()
        if call not in self._calls:
            stash = Stash(self._folder, writer_name())
            self._calls[call] = CallJournal(self._writer, stash, call, max_copy_bytes=self._max_copy_bytes)
        return self._calls[call]

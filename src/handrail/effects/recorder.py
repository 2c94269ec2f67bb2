"""Give each changing call its number, keep its journal, and write its record when it has ended.

The record is written beside the call path by one thread, in the order in which the calls end; whoever reads the records waits
for it first.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..environments.shell_host.journal import CallJournal
from ..environments.shell_host.journal_log import Entry, LogWriter, writer_name
from ..environments.shell_host.stash import Stash
from ..store.call_numbers import CallNumbers
from ..store.call_records import CallRecord
from .begun_calls import BEGUN_FOLDER, BegunCalls
from .journaled_files import JournaledFiles
from .open_call import Ended

if TYPE_CHECKING:
    from ..environments.base import Environment
    from ..protocols import Files

log = logging.getLogger(__name__)

JOURNAL_FOLDER, NUMBERS_FILE = "journal", "call-number"
_MAX_HEAD = 500


class Recorder:
    """`keep` writes a record, in the recorder's own thread. `folder` is the state folder."""

    is_enabled, is_durable = True, False
    max_copy_bytes = 1 << 30

    def __init__(
        self, folder: Path, keep: Callable[[Ended], None], settings_of: Callable[[str | None], dict[str, Any]]
    ) -> None:
        self.journal_folder = str(folder / JOURNAL_FOLDER)
        self.numbers = CallNumbers(folder / NUMBERS_FILE)
        self.begun_calls = BegunCalls(folder / BEGUN_FOLDER)
        self._keep, self._settings_of = keep, settings_of
        self._queue: queue.SimpleQueue[Ended | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._writer: _SharedWriter | None = None
        self._waiting = 0
        self._changed = threading.Condition()

    def begin(
        self, who: tuple[str, str | None, str | None], head: str, folder: str, environment: Environment | None
    ) -> CallRecord:
        tool, session, task = who
        name = environment.name if environment is not None else "local"
        place = os.path.realpath(folder if name == "local" else os.getcwd())
        record = CallRecord(self.numbers.next(), session, task, tool, head[:_MAX_HEAD], place, time.time(), name)
        if name != "local":
            record = record._replace(settings=self._settings_of(task))
        known = ("session", "task", "tool", "head", "folder", "begun", "environment", "settings")
        self.begun_calls.begin(record.number, {field: getattr(record, field) for field in known})
        return record

    def journaled(
        self, files: Files, begin: Callable[[str], int], journal: Callable[[], CallJournal]
    ) -> JournaledFiles:
        return JournaledFiles(files, begin, journal)

    def journal(self, number: int) -> CallJournal:
        """For changes that this process makes itself."""
        with self._changed:
            if self._writer is None or self._writer.process != os.getpid():
                self._writer = _SharedWriter(self.journal_folder, writer_name())
            stash = Stash(self.journal_folder, writer_name())
            return CallJournal(self._writer, stash, number, max_copy_bytes=self.max_copy_bytes)

    def end_journal(self, journal: CallJournal) -> None:
        journal.end()
        with self._changed:
            if self._writer is not None:
                if self.is_durable:
                    self._writer.sync()
                self._writer.rotate()

    def put(self, ended: Ended) -> None:
        with self._changed:
            self._waiting += 1
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="handrail-calls", daemon=True)
                self._thread.start()
        self._queue.put(ended)

    def flush(self) -> None:
        """Wait until every record of a call that has ended is written."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting or self._thread is None or not self._thread.is_alive())

    def close(self) -> None:
        self.flush()
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None
        if self._writer is not None and self._writer.process == os.getpid():
            self._writer.close()
        self.begun_calls.close()
        self.numbers.close()

    def _run(self) -> None:
        while (ended := self._queue.get()) is not None:
            try:
                self._keep(ended)
                self.begun_calls.end(ended.record.number)
            except Exception as error:  # noqa: BLE001  a full disk must not end the thread; the call itself has succeeded
                log.warning("the record of call %d could not be kept: %s", ended.record.number, error)
            with self._changed:
                self._waiting -= 1
                self._changed.notify_all()


class _SharedWriter(LogWriter):
    """A log that the threads of one process write to."""

    def __init__(self, journal: str, name: str) -> None:
        super().__init__(journal, name)
        self.process = os.getpid()
        self._lock = threading.Lock()

    def append(self, entry: Entry) -> None:
        with self._lock:
            super().append(entry)

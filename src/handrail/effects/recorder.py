"""Give each changing call its number, keep its journal, and write its record when it has ended.

The record is written beside the call path by one thread, in the order in which the calls end; whoever reads the records waits
for it first.
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..environments.shell_host.file_journal import FileJournal
from ..store.call_records import CallNumbers, CallRecord
from .begun_calls import BEGUN_FOLDER, BegunCalls
from .journaled_files import JournaledFiles
from .open_call import Ended

if TYPE_CHECKING:
    from ..environments.base import Environment
    from ..protocols import Answer, ApprovalRequest, Files

log = logging.getLogger(__name__)

JOURNAL_FOLDER, NUMBERS_FILE = "journal", "call-number"
_MAX_HEAD, _MAX_SHOWN = 500, 4_000


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
        self._worker: ThreadPoolExecutor | None = None
        self._last: Future[None] | None = None
        self._process, self._lock = 0, threading.Lock()

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

    def approval(self, given: tuple[ApprovalRequest, Answer] | None) -> dict[str, Any]:
        """What a record says of an approval: the question as it was shown, and who answered it."""
        if given is None:
            return {}
        request, answer = given
        shown = hashlib.sha256(f"{request.text}\0{request.preview}".encode()).hexdigest()
        asked = {"id": request.id, "shown": request.text[:_MAX_SHOWN], "shown_digest": shown, "reason": request.reason}
        return {**asked, "decision": answer.decision.value, "by": answer.by}

    @cached_property
    def files(self) -> FileJournal:
        """For changes that this process makes itself."""
        return FileJournal(self.journal_folder, max_copy_bytes=self.max_copy_bytes, is_durable=self.is_durable)

    def journaled(self, files: Files, begin: Callable[[str], int]) -> Files:
        return cast("Files", JournaledFiles(files, begin, self.files))

    def put(self, ended: Ended) -> None:
        with self._lock:
            if self._worker is None or self._process != os.getpid():  # also after a fork
                self._worker, self._process = ThreadPoolExecutor(1, thread_name_prefix="handrail-calls"), os.getpid()
            self._last = self._worker.submit(self._write, ended)

    def flush(self) -> None:
        """Wait until every record of a call that has ended is written."""
        if self._last is not None and self._process == os.getpid():
            wait([self._last])

    def close(self) -> None:
        self.flush()
        if self._worker is not None and self._process == os.getpid():
            self._worker.shutdown()
        self._worker = None
        if "files" in self.__dict__:
            self.files.close()
        self.begun_calls.close()
        self.numbers.close()

    def _write(self, ended: Ended) -> None:
        try:
            self._keep(ended)
            self.begun_calls.end(ended.record.number)
        except Exception as error:  # noqa: BLE001  the call itself has succeeded; the next start tries again
            log.warning("the record of call %d could not be kept: %s", ended.record.number, error)

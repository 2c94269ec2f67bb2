"""Give each changing call its number, keep its journal, and write its record when it has ended. The record is written beside
the call path by one thread, in the order in which the calls end; whoever reads the records waits for it first."""

import contextlib
import hashlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from ..base.own_process import has_exited, runtime_id
from ..environments.base import Environment
from ..environments.shell_host.journal import FileJournal
from ..protocols import Answer, ApprovalRequest, Files, FileStat
from ..store.call_records import CallNumbers, CallRecord
from .open_call import Ended

log = logging.getLogger(__name__)
JOURNAL_FOLDER, NUMBERS_FILE, BEGUN_FOLDER = "journal", "call-number", "begun-calls"
_MAX_BEGUN_BYTES = 1 << 20
_MAX_HEAD, _MAX_SHOWN, _MAX_FOLDERS = 500, 4_000, 1000
_BEGUN = ("session", "task", "tool", "head", "folder", "begun", "environment")


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
        self._without_links: set[str] = set()

    def begin(
        self, who: tuple[str, str | None, str | None], head: str, folder: str, environment: Environment | None
    ) -> CallRecord:
        tool, session, task = who
        name = environment.name if environment is not None else "local"
        place = folder if name == "local" else os.getcwd()
        if place not in self._without_links:  # a shell's has none, by what the kernel says, and is not looked at again
            place = os.path.realpath(place)
            self._without_links = {place, *([] if len(self._without_links) > _MAX_FOLDERS else self._without_links)}
        record = CallRecord(self.numbers.next(), session, task, tool, head[:_MAX_HEAD], place, time.time(), name)
        if name != "local":
            record = record._replace(settings=self._settings_of(task))
        known = dict(zip(_BEGUN, record[1:], strict=False))
        self.begun_calls.begin(record.number, {**known, "settings": record.settings})
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


class BegunCalls:
    """The calls that have begun, one line each, so that the next runtime knows whose an interrupted call was. Every process
    appends to a file of its own, named by its runtime id; the file is emptied when nothing is open and it is long."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._lock = folder, threading.Lock()
        self._fd, self._owner, self._bytes = -1, "", 0
        self._open: set[int] = set()

    def begin(self, number: int, about: dict[str, Any]) -> None:
        with self._lock:
            if self._fd < 0 or self._owner != runtime_id():  # also after a fork
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._owner = runtime_id()
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
                self._fd = os.open(self._folder / self._owner, flags, 0o600)
                self._bytes = os.fstat(self._fd).st_size
            self._open.add(number)
            self._bytes += os.write(self._fd, json.dumps({"number": number, **about}).encode() + b"\n")

    def returned(self, number: int, about: dict[str, Any]) -> None:
        """It has ended well, and its record is still to be written."""
        with self._lock:
            self._bytes += os.write(self._fd, json.dumps({"returned": number, **about}).encode() + b"\n")

    def end(self, number: int) -> None:
        """Its record is kept by now, or it needs none."""
        with self._lock:
            self._open.discard(number)
            if self._fd >= 0:
                self._bytes += os.write(self._fd, b'{"gone": %d}\n' % number)
                if not self._open and self._bytes > _MAX_BEGUN_BYTES:
                    os.ftruncate(self._fd, 0)
                    self._bytes = 0

    def close(self) -> None:
        """Remove the file, unless something is still open."""
        with self._lock:
            if self._fd >= 0 and self._owner == runtime_id():
                os.close(self._fd)
                if not self._open:
                    (self._folder / self._owner).unlink(missing_ok=True)
            self._fd = -1


def left_behind(folder: Path) -> list[tuple[Path, list[dict[str, Any]]]]:
    """The calls that processes have left open which have exited since. Whoever has dealt with them removes the file."""
    paths = list(folder.iterdir()) if folder.is_dir() else []
    return [(path, _unended(path)) for path in paths if has_exited(path.name)]


def _unended(path: Path) -> list[dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for line in path.read_bytes().splitlines():
        with contextlib.suppress(ValueError, KeyError):  # cut off when its process was killed
            about = json.loads(line)
            if "gone" in about:
                del found[about["gone"]]
            elif "returned" in about:
                found[about.pop("returned")].update(about)
            else:
                found[about["number"]] = about
    return list(found.values())


class JournaledFiles:
    """`protocols.Files`. `begin` is called with the path before each change, and gives the number of the call; `journal` is that
    of this machine. Files elsewhere are kept where they are."""

    def __init__(self, files: Files, begin: Callable[[str], int], journal: FileJournal) -> None:
        self._files, self._begin, self._journal = files, begin, journal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def write(self, path: str, data: bytes, *, mode: int | None = None) -> FileStat:
        resolved = self._files.resolve(path)
        return self._files.write(path, data, mode=mode, **self._kept(resolved, is_replaced=True))

    def remove(self, path: str) -> None:
        folder, _, name = path.rstrip("/").rpartition("/")
        parent = self._files.resolve(folder or ("/" if path.startswith("/") else "."))
        self._files.remove(path, **self._kept(os.path.join(parent, name), is_replaced=False))

    def _kept(self, path: str, *, is_replaced: bool) -> dict[str, int]:
        """Keep what is there, or say for which call that is to be done elsewhere."""
        number, here = self._begin(path), self._files.host_path(os.path.dirname(path))
        if number and here is not None:
            self._journal.keep(number, os.path.join(here, os.path.basename(path)), is_replaced=is_replaced)
        return {"call": number} if number and here is None else {}

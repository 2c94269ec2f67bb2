"""The folder of a batch: its options, ledger and lock, and how it is doing, from any process. Large things (trajectories, and
what tasks are to keep) are in a store of files, under an fsspec URL. Workers write there themselves, from whatever node, and
the ledger has only the names. Every attempt has names of its own, so that one which has lost its task replaces nothing."""

import contextlib
import json
import posixpath
import secrets
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import filelock

from ..base.lazy_module import extra_module
from ..config.paths import make_private, replace_private, state_dir
from ..errors import HandrailError, InvalidArguments, ToolFailed
from ..protocols import Files
from ..store.ledger import DONE, RUNNING, WAITING, PostgresLedger, SqliteLedger, SqlLedger
from ..types import JsonDict
from .tasks import Task

_FILE, _LEDGER, _LOCK, _KNOWN = "batch.json", "ledger.db", ".lock", "batches"
STOP = "stop"
_RUN_CHARS = 8
# Who only looks whether a batch runs holds its lock for a moment.
_LOCK_SECONDS = 0.5


@dataclass(frozen=True)
class Options:
    """How a batch runs; kept in its folder, so that a resume needs only that."""

    engine: str = "local"
    address: str = "auto"
    workers: int = 2
    sessions: int = 8
    attempts: int = 3
    lease_seconds: float = 30.0
    approvals: str = "inbox"
    ledger: str = ""
    run: str = ""
    artifacts: str = ""


def create(tasks: Iterable[Task], out: Path, options: Options) -> Options:
    """Make the folder of a batch. Raises InvalidArguments if there is one already, or a task cannot be read."""
    out.mkdir(mode=0o700, parents=True, exist_ok=True)
    if (out / _FILE).exists():
        raise InvalidArguments(f"{out} is a batch already; `handrail batch resume {out}` goes on with it")
    options = replace(options, run=secrets.token_hex(_RUN_CHARS // 2))
    if options.artifacts:
        Artifacts(options.artifacts).check()
    with contextlib.closing(open_ledger(out, options)) as ledger:
        try:
            ledger.add((task.id, task.to_json()) for task in _checked(tasks, options))
        except BaseException:
            if not options.ledger:
                for path in out.glob(f"{_LEDGER}*"):
                    path.unlink()
            raise
    replace_private(out / _FILE, json.dumps(asdict(options), indent=2) + "\n")
    return options


def _checked(tasks: Iterable[Task], options: Options) -> Iterator[Task]:
    for task in tasks:
        if task.keep and not options.artifacts:
            raise InvalidArguments(f"the task {task.id} keeps files; say where with --artifacts URL")
        yield task


def read_options(out: Path) -> Options:
    try:
        return Options(**json.loads((out / _FILE).read_text()))
    except (OSError, ValueError, TypeError):
        raise InvalidArguments(f"{out} is not a batch; `handrail batch TASKS --out {out}` makes one") from None


def status(out: Path, options: Options | None = None) -> JsonDict:
    """How a batch is doing, from any process. `options` are read from its folder if they are not given."""
    options = options or read_options(out)
    with contextlib.closing(open_ledger(out, options)) as ledger:
        counts, progress = ledger.counts(), ledger.fact("progress") or {}
        is_running = is_locked(out)
        state = "stopping" if is_running and ledger.fact(STOP) else RUNNING if is_running else state_of(counts)
    about = {"state": state, "engine": options.engine, "run": options.run}
    return {**about, **progress, **counts, "eta": progress.get("eta") if is_running else None}


def failures(out: Path, options: Options, count: int) -> list[JsonDict]:
    with contextlib.closing(open_ledger(out, options)) as ledger:
        return ledger.failed(count)


def request_stop(out: Path, options: Options | None = None, *, seconds: float = 30.0) -> bool:
    """Ask the driver to stop, and wait for that. False when none runs."""
    options = options or read_options(out)
    if not is_locked(out):
        return False
    with contextlib.closing(open_ledger(out, options)) as ledger:
        ledger.set_fact(STOP, True)
    end, tick = time.monotonic() + seconds, threading.Event()
    while is_locked(out) and time.monotonic() < end:
        tick.wait(0.1)
    if is_locked(out):
        raise HandrailError(f"the driver of {out} does not stop; its processes are the children of `handrail batch`")
    return True


def remember(out: Path, options: Options, home: str) -> None:
    """Let `known` find the batch. Its options are kept too: its folder may be one where agents write."""
    folder = state_dir(home) / _KNOWN
    make_private(folder)
    replace_private(folder / options.run, json.dumps({"folder": str(out), "options": asdict(options)}))


def known(home: str) -> Iterator[tuple[Path, Options]]:
    """The batches that this home has run and whose folders are still there, the newest first."""
    # Each has the name of its run; a longer one is being written.
    entries = [(each.stat().st_mtime, each) for each in (state_dir(home) / _KNOWN).glob("?" * _RUN_CHARS)]
    for _, entry in sorted(entries, reverse=True):
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            said = json.loads(entry.read_text())
            out, options = Path(said["folder"]), Options(**said["options"])
            if (out / _FILE).exists() and read_options(out).run == options.run:
                yield out, options
            else:
                entry.unlink()


def state_of(counts: JsonDict) -> str:
    return "stopped" if counts[WAITING] + counts[RUNNING] else DONE


def open_ledger(out: Path, options: Options) -> SqlLedger:
    return PostgresLedger(options.ledger, options.run) if options.ledger else SqliteLedger(out / _LEDGER)


@contextlib.contextmanager
def locked(out: Path) -> Iterator[None]:
    """Raises InvalidArguments when another driver runs it."""
    try:
        with filelock.FileLock(out / _LOCK, timeout=_LOCK_SECONDS, mode=0o600):
            yield
    except filelock.Timeout:
        raise InvalidArguments(f"{out} is being run already; `handrail batch status {out}` shows how far") from None


def is_locked(out: Path) -> bool:
    if not (out / _LOCK).exists():
        return False
    try:
        with filelock.FileLock(out / _LOCK, timeout=0, mode=0o600):
            return False
    except filelock.Timeout:
        return True


class Artifacts:
    """`url` as fsspec takes it: a path, `file://`, `s3://`, ... Everything raises ToolFailed."""

    def __init__(self, url: str) -> None:
        fsspec = extra_module("fsspec", "fsspec", "a store for artifacts", ToolFailed)
        with _told(url):
            self._system, self._root = fsspec.url_to_fs(url)

    def check(self) -> None:
        """See that something can be written there, now and not after the first task."""
        with _told(self._root):
            self._system.makedirs(self._root, exist_ok=True)

    def write_json(self, name: str, value: JsonDict) -> str:
        with self._opened(name) as (file, url):
            file.write(json.dumps(value, ensure_ascii=False).encode())
        return url

    def copy(self, files: Files, path: str, name: str) -> str | None:
        """Copy a file, or all files of a folder, of a task's environment. None when nothing is there, or links lead there."""
        if files.stat(path) is None or files.resolve(path) != path:
            return None
        for each, below in _walk(files, path):
            with self._opened(posixpath.join(name, below)) as (file, _):
                offset = 0
                while piece := files.read(each, max_bytes=files.max_read_bytes, offset=offset):
                    file.write(piece)
                    offset += len(piece)
        return self._url(name)

    def remove(self, name: str) -> None:
        with contextlib.suppress(Exception):  # it is in nobody's way: no result names it
            self._system.rm(posixpath.join(self._root, name), recursive=True)

    @contextlib.contextmanager
    def _opened(self, name: str) -> Iterator[tuple[Any, str]]:
        path = posixpath.join(self._root, name.rstrip("/"))
        with _told(path):
            self._system.makedirs(posixpath.dirname(path), exist_ok=True)
            with self._system.open(path, "wb") as file:
                yield file, self._url(name)

    def _url(self, name: str) -> str:
        return str(self._system.unstrip_protocol(posixpath.join(self._root, name.rstrip("/"))))


def _walk(files: Files, path: str, below: str = "") -> Iterator[tuple[str, str]]:
    """The regular files at a path, each with its path from there. Links are left out."""
    found = files.stat(path)
    if found is not None and not found.is_dir:
        yield path, below
        return
    for entry in sorted(files.entries(path)):
        if entry.is_dir or entry.is_file:
            yield from _walk(files, posixpath.join(path, entry.name), posixpath.join(below, entry.name))


@contextlib.contextmanager
def _told(where: str) -> Iterator[None]:
    try:
        yield
    except ToolFailed:
        raise
    except Exception as error:  # noqa: BLE001  every file system has errors of its own
        raise ToolFailed(f"artifacts cannot be kept at {where}: {type(error).__name__}: {error}") from None

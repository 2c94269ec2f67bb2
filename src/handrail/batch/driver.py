"""Run a batch: make its folder and ledger, keep workers at it until all tasks have ended, and write what came of them."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from ..app import Handrail
from ..approval.gate import STORE_NAME
from ..config.keys import key_of
from ..config.paths import state_dir
from ..errors import HandrailError, InvalidArguments, StoreError
from ..settings.model_providers import PROVIDERS
from ..store.approvals import ApprovalStore
from ..store.ledger import DONE, FAILED, RUNNING, WAITING, SqliteLedger, SqlLedger, work_folder
from ..store.ledger_postgres import PostgresLedger
from ..types import JsonDict
from .engines import open_engine
from .host import TRAJECTORIES, Host, Settings
from .link import Server
from .tasks import Task

_FILE, _RESULTS, _SUMMARY, _LOCK = "batch.json", "results.jsonl", "summary.json", ".lock"
_POLL_SECONDS = 0.25
# Longer than a cancelled call has to end by itself, and short enough that nothing lives 5 s after a stop.
_STOP_SECONDS = 3.0
_STOP = "stop"


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


Progress = Callable[[JsonDict], object]


def create(tasks: Iterable[Task], out: Path, options: Options) -> Options:
    """Make the folder of a batch. Raises InvalidArguments if there is one already, or a task cannot be read."""
    out.mkdir(mode=0o700, parents=True, exist_ok=True)
    if (out / _FILE).exists():
        raise InvalidArguments(f"{out} is a batch already; `handrail batch resume {out}` goes on with it")
    options = Options(**{**asdict(options), "run": secrets.token_hex(4)})
    with contextlib.closing(_open_ledger(out, options)) as ledger:
        try:
            ledger.add((task.id, task.model_dump_json()) for task in tasks)
        except BaseException:
            if not options.ledger:
                for path in out.glob("ledger.db*"):
                    path.unlink()
            raise
    _replace(out / _FILE, json.dumps(asdict(options), indent=2) + "\n")
    return options


def read_options(out: Path) -> Options:
    try:
        return Options(**json.loads((out / _FILE).read_text()))
    except (OSError, ValueError, TypeError):
        raise InvalidArguments(f"{out} is not a batch; `handrail batch TASKS --out {out}` makes one") from None


class Batch:
    """One run of the driver over a batch that was made before. `stop` may be called from a signal handler or a thread."""

    def __init__(self, app: Handrail, out: Path) -> None:
        self._app, self._out, self._options = app, out.absolute(), read_options(out)
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()

    def run(self, on_progress: Progress = lambda _: None) -> JsonDict:
        """Until all tasks have ended, or it is stopped. Returns the summary."""
        options = self._options
        with contextlib.ExitStack() as closing:
            closing.enter_context(_locked(self._out))
            ledger = _open_ledger(self._out, options)
            closing.callback(ledger.close)
            ledger.set_fact(_STOP, False)
            ledger.give_back("", "the driver ended", 0)
            _drop_unknown(self._out / TRAJECTORIES, ledger)
            engine = open_engine(options.engine, address=options.address, out=self._out)
            host = closing.enter_context(self._hosting(ledger))
            server = Server(engine.host, host.handle, host.lost)
            closing.callback(server.close)
            try:
                engine.start(server.address, self._workers(ledger))
                meter = Meter(ledger)
                while not self._is_over(ledger, meter, on_progress):
                    engine.tend(host.begun.__contains__)
                    with contextlib.suppress(StoreError):  # a full disk: all wait until there is room
                        host.expire()
                    self._stopped.wait(_POLL_SECONDS)
            finally:
                host.is_stopping = True
                engine.stop(_STOP_SECONDS)
            ledger.give_back("", "stopped", 0)
            return self._written(ledger, meter)

    def _workers(self, ledger: SqlLedger) -> int:
        """Not more than there are tasks for."""
        left = ledger.counts()[WAITING]
        return max(1, min(self._options.workers, -(-left // self._options.sessions))) if left else 0

    def _is_over(self, ledger: SqlLedger, meter: Meter, on_progress: Progress) -> bool:
        try:
            progress = meter.read()
            ledger.set_fact("progress", progress)
            if ledger.fact(_STOP):
                self._stopped.set()
        except StoreError as error:
            on_progress({"problem": str(error)})
            return self._stopped.is_set()
        on_progress(progress)
        return self._stopped.is_set() or progress[WAITING] + progress[RUNNING] == 0

    @contextlib.contextmanager
    def _hosting(self, ledger: SqlLedger) -> Iterator[Host]:
        options, app = self._options, self._app
        asks = options.approvals == "inbox"
        names = {spec.key_variable for spec in PROVIDERS.values() if spec.key_variable} | {
            app.config.model.key_variable
        }
        variables = {name: value for name in names - {""} if (value := key_of(name))}
        given = (name for name in os.environ if name.endswith("_BASE_URL") or name == "HANDRAIL_MODEL")
        setup = {
            "asks": asks,
            "config": app.config,
            "variables": variables | {name: os.environ[name] for name in given},
        }
        settings = Settings(options.run, options.attempts, options.lease_seconds, options.sessions, setup)
        store = ApprovalStore(state_dir(app.config.home) / STORE_NAME) if asks else None
        try:
            yield Host(ledger, settings, out=self._out, approvals=store)
        finally:
            if store is not None:
                store.close()

    def _written(self, ledger: SqlLedger, meter: Meter) -> JsonDict:
        text = (json.dumps(line, ensure_ascii=False) + "\n" for line in ledger.results())
        _replace(self._out / _RESULTS, text)
        summary = meter.read()
        summary["state"] = _state(summary)
        _replace(self._out / _SUMMARY, json.dumps(summary, indent=2) + "\n")
        if summary["state"] == DONE:
            shutil.rmtree(work_folder(self._options.run), ignore_errors=True)
        return summary


class Meter:
    """Counts, cost, speed and the time that is left, of what has happened since it was made."""

    def __init__(self, ledger: SqlLedger) -> None:
        self._ledger, self._began = ledger, time.monotonic()
        self._before = self._ended(ledger.counts())

    def read(self) -> JsonDict:
        counts, seconds = self._ledger.counts(), time.monotonic() - self._began
        rate = (self._ended(counts) - self._before) / seconds if seconds else 0.0
        left = counts[WAITING] + counts[RUNNING]
        rewards, scored, cost, tokens = self._ledger.totals()
        return {
            **counts, "seconds": round(seconds, 1), "per_second": round(rate, 3), "tokens": tokens,
            "cost": None if cost is None else round(cost, 4), "eta": round(left / rate) if rate else None,
            "mean_reward": round(rewards / scored, 4) if scored else None,
        }  # fmt: skip

    @staticmethod
    def _ended(counts: dict[str, int]) -> int:
        return counts[DONE] + counts[FAILED]


def status(out: Path) -> JsonDict:
    """How a batch is doing, from any process."""
    options = read_options(out)
    with contextlib.closing(_open_ledger(out, options)) as ledger:
        counts, progress = ledger.counts(), ledger.fact("progress") or {}
        is_running = _is_locked(out)
        state = "stopping" if is_running and ledger.fact(_STOP) else RUNNING if is_running else _state(counts)
    about = {"state": state, "engine": options.engine, "run": options.run}
    return {**about, **progress, **counts, "eta": progress.get("eta") if is_running else None}


def request_stop(out: Path, *, seconds: float = 30.0) -> bool:
    """Ask the driver to stop, and wait for that. False when none runs."""
    if not _is_locked(out):
        read_options(out)
        return False
    with contextlib.closing(_open_ledger(out, read_options(out))) as ledger:
        ledger.set_fact(_STOP, True)
    end, tick = time.monotonic() + seconds, threading.Event()
    while _is_locked(out):
        if time.monotonic() > end:
            raise HandrailError(
                f"the driver of {out} does not stop; its processes are the children of `handrail batch`"
            )
        tick.wait(0.1)
    return True


def _state(counts: JsonDict) -> str:
    return "stopped" if counts[WAITING] + counts[RUNNING] else DONE


def _open_ledger(out: Path, options: Options) -> SqlLedger:
    return PostgresLedger(options.ledger, options.run) if options.ledger else SqliteLedger(out / "ledger.db")


def _drop_unknown(path: Path, ledger: SqlLedger) -> None:
    """Lines that were written just before the driver was killed, for results that the ledger does not have."""
    if not path.exists():
        return
    known = {(each["id"], each["attempt"]) for each in ledger.results() if each["state"] == DONE}

    def kept() -> Iterator[str]:
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                with contextlib.suppress(ValueError, KeyError, TypeError):  # the last one may be cut off
                    about = json.loads(line)
                    if (about["id"], about["attempt"]) in known:
                        yield line

    _replace(path, kept())


def _replace(path: Path, text: str | Iterable[str]) -> None:
    """All of it or nothing."""
    temporary = path.with_name(f".{path.name}.new")
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.writelines([text] if isinstance(text, str) else text)
    temporary.replace(path)


@contextlib.contextmanager
def _locked(out: Path) -> Iterator[None]:
    with open(os.open(out / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InvalidArguments(f"{out} is being run already; `handrail batch status {out}` shows how far") from None
        yield


def _is_locked(out: Path) -> bool:
    with contextlib.suppress(FileNotFoundError), open(out / _LOCK, "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False

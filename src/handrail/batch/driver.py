"""Run a batch: keep workers at it until all tasks have ended, and write what came of them. An engine starts the workers:
`local` as processes of this machine, `ray` as actors of a cluster."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from ..app import Handrail
from ..approval.gate import STORE_NAME
from ..base.lazy_module import extra_module
from ..base.own_process import self_command
from ..config.keys import key_of
from ..config.paths import replace_private, state_dir
from ..errors import HandrailError, StoreError, ToolFailed
from ..settings.services import PROVIDERS
from ..store.approvals import ApprovalStore
from ..store.ledger import DONE, FAILED, RUNNING, WAITING, SqlLedger, work_folder
from ..types import JsonDict
from .folder import STOP, locked, open_ledger, read_options, remember, state_of
from .host import TRAJECTORIES, Address, Host, Server
from .worker import work

_RESULTS, _SUMMARY = "results.jsonl", "summary.json"
_POLL_SECONDS = 0.25
# Longer than a cancelled call has to end by itself, and short enough that nothing lives 5 s after a stop.
_STOP_SECONDS = 3.0
Progress = Callable[[JsonDict], object]
ENGINES = ("local", "ray")
_MAX_BAD_STARTS = 3
_HEAD_SECONDS = 60.0


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
            closing.enter_context(locked(self._out))
            ledger = open_ledger(self._out, options)
            closing.callback(ledger.close)
            remember(self._out, options, self._app.config.home)
            ledger.set_fact(STOP, False)
            ledger.give_back("", "the driver ended", 0)
            _drop_unknown(self._out / TRAJECTORIES, ledger)
            if options.engine not in ENGINES:
                raise HandrailError(f"unknown engine {options.engine!r}; there are {' and '.join(ENGINES)}")
            is_local, log = options.engine == "local", self._out / "workers.log"
            engine = LocalEngine(log) if is_local else RayEngine(options.address)
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

    def _is_over(self, ledger: SqlLedger, meter: "Meter", on_progress: Progress) -> bool:
        try:
            progress = meter.read()
            ledger.set_fact("progress", progress)
            if ledger.fact(STOP):
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
        names = {spec.key_variable for spec in PROVIDERS.values()} | {app.config.model.key_variable}
        variables = {name: value for name in names - {""} if (value := key_of(name))}
        given = (name for name in os.environ if name.endswith("_BASE_URL") or name == "HANDRAIL_MODEL")
        variables |= {name: os.environ[name] for name in given}
        setup = {"asks": asks, "config": app.config, "variables": variables}
        store = ApprovalStore(state_dir(app.config.home) / STORE_NAME) if asks else None
        with contextlib.closing(store) if store is not None else contextlib.nullcontext():
            yield Host(ledger, options, out=self._out, approvals=store, setup=setup)

    def _written(self, ledger: SqlLedger, meter: "Meter") -> JsonDict:
        text = (json.dumps(line, ensure_ascii=False) + "\n" for line in ledger.results())
        replace_private(self._out / _RESULTS, text)
        summary = meter.read()
        summary["state"] = state_of(summary)
        replace_private(self._out / _SUMMARY, json.dumps(summary, indent=2) + "\n")
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

    replace_private(path, kept())


class Engine(ABC):
    """Keeps a number of workers running. `host` is where they reach the driver."""

    host = "127.0.0.1"

    def __init__(self) -> None:
        self._workers: dict[Any, tuple[str, Any]] = {}  # by what their end is known by
        self._started = self._bad_starts = 0

    def start(self, address: Address, count: int) -> None:
        self._address = address
        for _ in range(count):
            self._started += 1
            end, worker = self._start(name := f"w{self._started}")
            self._workers[end] = name, worker

    @abstractmethod
    def _start(self, name: str) -> tuple[Any, Any]:
        """Start one. Returns what its end is known by, and the worker."""

    @abstractmethod
    def tend(self, has_begun: Callable[[str], bool]) -> None:
        """Replace the workers that have ended. Raises ToolFailed when they end before they have begun, time and again."""

    @abstractmethod
    def stop(self, seconds: float) -> None:
        """Wait for the workers to end; kill those that have not in time, and what they run."""

    def _ended(self, end: Any, has_begun: Callable[[str], bool], why: Callable[[], str], *, was_killed: bool) -> None:
        """One that was killed says nothing about the next."""
        name, _ = self._workers.pop(end)
        self._bad_starts = 0 if was_killed or has_begun(name) else self._bad_starts + 1
        if self._bad_starts >= _MAX_BAD_STARTS:
            raise ToolFailed(f"no worker starts: {why()}")


class LocalEngine(Engine):
    """Processes of this machine, whose errors go to a file."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self._log = log

    def _start(self, name: str) -> tuple[Any, Any]:
        with open(self._log, "ab") as errors:
            worker = subprocess.Popen(
                self_command("batch", "worker"),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,  # Ctrl-C is the driver's to handle
            )
        host, port, key = self._address
        told = {"host": host, "port": port, "key": key.hex(), "name": name}
        assert worker.stdin is not None
        with contextlib.suppress(BrokenPipeError), worker.stdin as stdin:
            stdin.write(json.dumps(told).encode() + b"\n")
        return name, worker

    def tend(self, has_begun: Callable[[str], bool]) -> None:
        for name, worker in tuple(self._workers.values()):
            if worker.poll() is not None:
                self._ended(name, has_begun, self._last_line, was_killed=worker.returncode < 0)
                self.start(self._address, 1)

    def _last_line(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return f"{lines[-1] if lines else 'it says nothing'}; see {self._log}"

    def stop(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        for _, worker in self._workers.values():
            try:
                worker.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(worker.pid, signal.SIGKILL)
                worker.wait()
        self._workers.clear()


class RayEngine(Engine):
    """Actors, spread over the nodes of a Ray cluster. They use Ray only to be placed: they talk with the driver directly."""

    def __init__(self, address: str) -> None:
        super().__init__()
        ray = extra_module("ray", "ray", "the engine ray", ToolFailed)
        self._ray, self._cluster = ray, address
        self._mine = not ray.is_initialized()
        self._connect()
        self.host = str(ray.util.get_node_ip_address())

    def _connect(self) -> None:
        try:
            if self._mine:
                self._ray.init(address=self._cluster, log_to_driver=False, logging_level="ERROR")
        except Exception as error:  # noqa: BLE001  Ray raises many kinds
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            hint = "see that it runs, and that RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH has its token if it wants one"
            raise ToolFailed(f"the Ray cluster at {self._cluster} cannot be used: {reason}; {hint}") from None

    def _start_over(self, count: int) -> None:
        """Connect again, to a head that may have to come back first, and start the workers there."""
        self._workers.clear()
        self._ray.shutdown()
        end, tick = time.monotonic() + _HEAD_SECONDS, threading.Event()
        while True:
            try:
                self._connect()
                break
            except ToolFailed:
                if time.monotonic() > end:
                    raise
                tick.wait(1.0)
        self.start(self._address, count)

    def start(self, address: Address, count: int) -> None:
        # One CPU each; a full cluster makes those wait that it has no room for.
        options = {"num_cpus": 1, "max_restarts": 0, "scheduling_strategy": "SPREAD"}
        self._actor = self._ray.remote(**options)(RayWorker)
        super().start(address, count)

    def _start(self, name: str) -> tuple[Any, Any]:
        actor = self._actor.remote()
        return actor.work.remote(self._address, name), actor

    def tend(self, has_begun: Callable[[str], bool]) -> None:
        ended, _ = self._ray.wait(list(self._workers), timeout=0) if self._workers else ([], [])
        for done in ended:
            self._ended(done, has_begun, partial(self._why, done), was_killed=False)
        # The head may be another one, which knows nothing of this driver and never places an actor of it.
        if ended and self._mine and not any(has_begun(name) for name, _ in self._workers.values()):
            self._start_over(len(ended) + len(self._workers))
        else:
            super().start(self._address, len(ended))

    def _why(self, done: Any) -> str:
        try:
            why = self._ray.get(done) or "it ended"
        except Exception as error:  # noqa: BLE001  whatever an actor raised is the reason
            why = str(error).strip().splitlines()[-1]
        return f"{why}; is handrail installed on the nodes of the cluster?"

    def stop(self, seconds: float) -> None:
        if self._workers:
            self._ray.wait(list(self._workers), num_returns=len(self._workers), timeout=seconds)
        for _, actor in self._workers.values():
            self._ray.kill(actor)
        self._workers.clear()
        if self._mine:
            self._ray.shutdown()


class RayWorker:
    def work(self, address: Address, name: str) -> None:
        work(address, name, is_apart=True)

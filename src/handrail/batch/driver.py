"""Run a batch: keep workers at it until all tasks have ended, and write what came of them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ..app import Handrail
from ..approval.gate import STORE_NAME
from ..config.keys import key_of
from ..config.paths import state_dir
from ..errors import StoreError
from ..settings.services import PROVIDERS
from ..store.approvals import ApprovalStore
from ..store.ledger import DONE, FAILED, RUNNING, WAITING, SqlLedger, work_folder
from ..types import JsonDict
from .engines import open_engine
from .folder import STOP, locked, open_ledger, read_options, remember, replace_file, state_of
from .host import TRAJECTORIES, Host, Settings
from .link import Server

_RESULTS, _SUMMARY = "results.jsonl", "summary.json"
_POLL_SECONDS = 0.25
# Longer than a cancelled call has to end by itself, and short enough that nothing lives 5 s after a stop.
_STOP_SECONDS = 3.0
Progress = Callable[[JsonDict], object]


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
        names = {spec.key_variable for spec in PROVIDERS.values() if spec.key_variable} | {
            app.config.model.key_variable
        }
        variables = {name: value for name in names - {""} if (value := key_of(name))}
        given = (name for name in os.environ if name.endswith("_BASE_URL") or name == "HANDRAIL_MODEL")
        setup = {
            "asks": asks,
            "artifacts": options.artifacts,
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
        replace_file(self._out / _RESULTS, text)
        summary = meter.read()
        summary["state"] = state_of(summary)
        replace_file(self._out / _SUMMARY, json.dumps(summary, indent=2) + "\n")
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

    replace_file(path, kept())

"""What starts the workers of a batch: `local` as processes of this machine, `ray` as actors of a cluster."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from ..base.own_process import self_command
from ..errors import HandrailError, ToolFailed
from .link import Address
from .worker import work

ENGINES = ("local", "ray")
_MAX_BAD_STARTS = 3
_HEAD_SECONDS = 60.0


class Engine(Protocol):
    """Keeps a number of workers running. `host` is where they reach the driver."""

    host: str

    def start(self, address: Address, count: int) -> None: ...

    def tend(self, has_begun: Callable[[str], bool]) -> None:
        """Replace the workers that have ended. Raises ToolFailed when they end before they have begun, time and again."""

    def stop(self, seconds: float) -> None:
        """Wait for the workers to end; kill those that have not in time, and what they run."""


class LocalEngine:
    """Processes of this machine, whose errors go to a file."""

    host = "127.0.0.1"

    def __init__(self, log: Path) -> None:
        self._log = log
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self._started = self._bad_starts = 0

    def start(self, address: Address, count: int) -> None:
        self._address = address
        for _ in range(count):
            self._start()

    def _start(self) -> None:
        self._started += 1
        name = f"w{self._started}"
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
        self._workers[name] = worker

    def tend(self, has_begun: Callable[[str], bool]) -> None:
        for name, worker in tuple(self._workers.items()):
            if worker.poll() is None:
                continue
            del self._workers[name]
            # One that was killed says nothing about the next.
            self._bad_starts = 0 if has_begun(name) or worker.returncode < 0 else self._bad_starts + 1
            if self._bad_starts >= _MAX_BAD_STARTS:
                lines = self._log.read_text(errors="replace").strip().splitlines()
                raise ToolFailed(f"no worker starts: {lines[-1] if lines else 'it says nothing'}; see {self._log}")
            self._start()

    def stop(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        for worker in self._workers.values():
            try:
                worker.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(worker.pid, signal.SIGKILL)
                worker.wait()
        self._workers.clear()


class RayEngine:
    """Actors, spread over the nodes of a Ray cluster. They use Ray only to be placed: they talk with the driver directly."""

    def __init__(self, address: str) -> None:
        try:
            ray: Any = import_module("ray")  # heavy, and only this engine needs it
        except ImportError:
            raise ToolFailed("the engine ray needs the extra: pip install 'handrail[ray]'") from None
        self._ray, self._cluster = ray, address
        self._mine = not ray.is_initialized()
        self._workers: dict[Any, tuple[str, Any]] = {}
        self._started = self._bad_starts = 0
        self._connect()
        self.host = str(ray.util.get_node_ip_address())

    def _connect(self) -> None:
        try:
            if self._mine:
                self._ray.init(address=self._cluster, log_to_driver=False, logging_level="ERROR")
        except Exception as error:  # noqa: BLE001  Ray raises many kinds
            raise ToolFailed(_cluster_problem(self._cluster, error)) from None

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
        self._address = address
        # One CPU each; a full cluster makes those wait that it has no room for.
        options = {"num_cpus": 1, "max_restarts": 0, "scheduling_strategy": "SPREAD"}
        self._actor = self._ray.remote(**options)(RayWorker)
        for _ in range(count):
            self._start()

    def _start(self) -> None:
        self._started += 1
        name = f"ray{self._started}"
        actor = self._actor.remote()
        self._workers[actor.work.remote(self._address, name)] = name, actor

    def tend(self, has_begun: Callable[[str], bool]) -> None:
        ended, _ = self._ray.wait(list(self._workers), timeout=0) if self._workers else ([], [])
        for done in ended:
            name, _ = self._workers.pop(done)
            self._bad_starts = 0 if has_begun(name) else self._bad_starts + 1
            if self._bad_starts >= _MAX_BAD_STARTS:
                try:
                    why = self._ray.get(done) or "it ended"
                except Exception as error:  # noqa: BLE001  whatever an actor raised is the reason
                    why = str(error).strip().splitlines()[-1]
                raise ToolFailed(f"no worker starts on the cluster: {why}; is handrail installed on its nodes?")
        # The head may be another one, which knows nothing of this driver and never places an actor of it.
        if ended and self._mine and not any(has_begun(name) for name, _ in self._workers.values()):
            self._start_over(len(ended) + len(self._workers))
            return
        for _ in ended:
            self._start()

    def stop(self, seconds: float) -> None:
        if self._workers:
            self._ray.wait(list(self._workers), num_returns=len(self._workers), timeout=seconds)
        for _, actor in self._workers.values():
            self._ray.kill(actor)
        self._workers.clear()
        if self._mine:
            self._ray.shutdown()


class RayWorker:
    """The actor."""

    def work(self, address: Address, name: str) -> None:
        work(address, name, is_apart=True)


def open_engine(name: str, *, address: str, out: Path) -> Engine:
    if name not in ENGINES:
        raise HandrailError(f"unknown engine {name!r}; there are {' and '.join(ENGINES)}")
    return LocalEngine(out / "workers.log") if name == "local" else RayEngine(address)


def _cluster_problem(address: str, error: Exception) -> str:
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
    hint = "see that it runs, and that RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH has its token if it wants one"
    return f"the Ray cluster at {address} cannot be used: {reason}; {hint}"

"""Figures of batches: the engine ray beside the engine local, what a worker adds to a bare actor, and the driver's memory.

`BATCH_SESSIONS` and `BATCH_QUEUED` say how many sessions are run and how many tasks wait.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.services.ray_cluster import RayCluster, ray_cluster
from tests.support import wait_until

from handrail.base.own_process import self_command
from handrail.batch.folder import request_stop, status
from handrail.environments.shell_host import proc
from handrail.testing import ModelReply, ModelServer, call

from .harness import Figure

_SESSIONS, _QUEUED = int(os.environ.get("BATCH_SESSIONS", "60")), int(os.environ.get("BATCH_QUEUED", "10000"))
_WORKERS, _AT_ONCE = 2, 8
_COMMANDS = ("cd /tmp; export STATE=kept", "pwd; echo $STATE")
_TIMEOUT = 3600.0


def figures() -> Iterator[Figure]:
    # Else Ray runs its workers with the lowest priority, and a busy machine slows down one engine and not the other.
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112  the name is Ray's
    with (
        tempfile.TemporaryDirectory() as folder,
        ModelServer([_answer] * 1_000_000) as server,
        ray_cluster(2) as cluster,
    ):
        os.environ |= {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none", "HANDRAIL_MODEL": "scripted"}
        os.environ |= cluster.env
        yield from _engines(Path(folder), cluster)
        few, many = _queued(Path(folder, "few"), _WORKERS * _AT_ONCE * 4), _queued(Path(folder, "many"), _QUEUED)
        what = f"memory of a driver with {_QUEUED:,} tasks, to few"
        yield Figure(what, f"{many:.0f} MB", f"{few:.0f} MB", many / few, 1.15)


def _engines(folder: Path, cluster: RayCluster) -> Iterator[Figure]:
    bare, floor = _bare(cluster)
    local, _ = _rate(folder / "local")
    on_ray = ("--engine", "ray", "--address", cluster.address)
    ray, memory = _rate(folder / "ray", *on_ray, workers=_ray_workers)
    yield Figure("sessions of a batch: engine local to ray", f"{ray:.1f}/s", f"{local:.1f}/s", local / ray, 1 / 0.9)
    what = "agent session in an actor, to bash -c with its commands"
    yield Figure(what, f"{ray:.1f}/s", f"{bare:.1f}/s", bare / ray)
    yield Figure("  memory of its actor", f"{memory:.0f} MB", f"{floor:.0f} MB", memory / floor, None, "goal +10 MB")


def _answer(messages: Any, tools: Any) -> ModelReply:
    number = sum(message["role"] == "assistant" for message in messages)
    if number == len(_COMMANDS):
        return ModelReply("done")
    return ModelReply(tool_calls=[call("terminal", f"c{number}", command=_COMMANDS[number])])


def _started(out: Path, count: int, *options: str) -> subprocess.Popen[bytes]:
    out.mkdir()
    task = {"prompt": "go", "toolsets": ["terminal"], "cwd": str(out)}
    (out / "tasks").write_text("".join(json.dumps({"id": f"t{n}", **task}) + "\n" for n in range(count)))
    sizes = ("--workers", str(_WORKERS), "--sessions", str(_AT_ONCE), "--out", str(out / "run"), "--approvals", "deny")
    command = self_command("batch", str(out / "tasks"), *sizes, *options)
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def _rate(out: Path, *options: str, workers: Callable[[], list[int]] = list) -> tuple[float, float]:
    """Sessions per second after the first tenth, with which the workers start, and the most memory of a worker."""
    driver, skipped, memory = _started(out, _SESSIONS, *options), max(_WORKERS, _SESSIONS // 10), [0.0]
    _wait(driver, lambda: _ended(out) >= skipped)
    start, before = time.monotonic(), _ended(out)

    def is_over() -> bool:
        if time.monotonic() > start + len(memory):  # looking for them costs the engine that is measured
            memory.append(max(map(_megabytes, workers()), default=0.0))
        return _ended(out) == _SESSIONS

    _wait(driver, is_over)
    rate = (_SESSIONS - before) / (time.monotonic() - start)
    driver.communicate(timeout=_TIMEOUT)
    assert driver.returncode == 0, out
    return rate, max(memory)


def _queued(out: Path, count: int) -> float:
    """The driver's memory when the same number of its tasks is done."""
    driver = _started(out, count)
    _wait(driver, lambda: _ended(out) >= _WORKERS * _AT_ONCE * 2)
    memory = _megabytes(driver.pid)
    request_stop(out / "run")
    driver.communicate(timeout=_TIMEOUT)
    return memory


def _wait(driver: subprocess.Popen[bytes], is_so: Callable[[], bool]) -> None:
    wait_until(lambda: is_so() or driver.poll() is not None, timeout=_TIMEOUT)


def _ended(out: Path) -> int:
    if not (out / "run" / "batch.json").exists():
        return 0
    found = status(out / "run")
    assert not found["failed"], out
    return int(found["done"])


def _bare(cluster: RayCluster) -> tuple[float, float]:
    """Sessions per second of actors that run the same commands with `bash -c`, and the memory of one."""
    ray = import_module("ray")
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    try:
        actors = [ray.remote(num_cpus=1)(Bare).remote() for _ in range(_WORKERS)]
        ray.get([each.run.remote(1) for each in actors])
        start = time.monotonic()
        memory = ray.get([each.run.remote(_SESSIONS // _WORKERS) for each in actors])
        return _SESSIONS // _WORKERS * _WORKERS / (time.monotonic() - start), max(memory)
    finally:
        ray.shutdown()


class Bare:
    """An actor without Handrail, but with the client of a model."""

    def run(self, count: int) -> float:
        import_module("openai").AsyncOpenAI(api_key="none")  # who asks a model has its client
        for _ in range(count):
            for command in _COMMANDS:
                subprocess.run(["bash", "-c", command], check=True, capture_output=True)
        return _megabytes(os.getpid())


def _ray_workers() -> list[int]:
    found = (int(each.name) for each in Path("/proc").glob("[0-9]*"))
    return [pid for pid in found if proc.command_line(pid).startswith("ray::RayWorker")]


def _megabytes(pid: int) -> float:
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Pss:")) / 1024
    except (OSError, StopIteration):
        return 0.0

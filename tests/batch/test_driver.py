"""Batches from end to end: real drivers and workers, killed, stopped and resumed."""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from handrail.base.own_process import self_command
from handrail.testing import ModelServer
from handrail.testing.model_server import Fault
from tests.services.postgres import Postgres
from tests.services.small_disk import small_disk
from tests.support import trust_plugins, wait_until

from .conftest import Batch, commands, kill, scripted, unknown

STOPS_THE_LOOP = """
import asyncio

async def stop(args, **_):
    asyncio.get_running_loop().stop()
    await asyncio.sleep(30)

def register(api):
    schema = {"description": "Stop.", "parameters": {"type": "object", "properties": {}}}
    api.register_tool(name="stop", toolset="bad", handler=stop, is_async=True, schema=schema)
"""


def test_every_task_is_run_once_and_its_trajectory_kept(batch: Batch) -> None:
    tasks = [batch.task(f"t{n}", f"echo t{n} >> effects", "true", reward="grep -c . effects") for n in range(6)]
    results = batch.run(tasks, "--workers", "2", "--sessions", "3")
    assert [(each["id"], each["state"], each["attempt"]) for each in results] == [
        (f"t{n}", "done", 1) for n in range(6)
    ]
    assert all(each["reward"] >= 1 and each["ended_by"] == "answered" for each in results)
    assert batch.count_effects() == {f"t{n}": 1 for n in range(6)}
    lines = batch.trajectories()
    assert [message["role"] for message in lines["t0"]["messages"]] == ["user", *["assistant", "tool"] * 2, "assistant"]
    assert json.loads((batch.out / "summary.json").read_text())["done"] == 6


def test_a_tool_that_stops_the_loop_ends_its_own_call_and_no_session(batch: Batch, home: Path) -> None:
    (home / "plugins" / "bad").mkdir(parents=True)
    (home / "plugins" / "bad" / "__init__.py").write_text(STOPS_THE_LOOP)
    trust_plugins(home)
    stop = {"tool": "stop", "arguments": {}}
    tasks = [batch.task("t0", stop, "echo t0 >> effects", toolsets=["terminal", "bad"]), batch.task("t1", "sleep 1")]
    results = batch.run(tasks, "--workers", "1", "--sessions", "2")
    assert [(each["state"], each["attempt"]) for each in results] == [("done", 1)] * 2
    assert batch.count_effects() == {"t0": 1}


def _with_effects(batch: Batch, count: int) -> list[dict[str, Any]]:
    """Each appends to a shared file before, in the middle of and after a pause."""
    steps = [f"echo {{0}}.{n} >> effects; sleep 0.{n}" for n in range(3)]
    return [batch.task(f"t{n}", *(step.format(f"t{n}") for step in steps)) for n in range(count)]


def _check_effects(batch: Batch, results: list[dict[str, Any]], count: int) -> int:
    """None lost, none twice, and whatever is missing is what the model was told to look for. Returns how often it was."""
    assert [each["state"] for each in results] == ["done"] * count
    effects, lines = batch.count_effects(), batch.trajectories()
    assert max(effects.values()) == 1
    told = {name: unknown(line) for name, line in lines.items()}
    for name, line in lines.items():
        missing = sum(f"{name}.{n}" not in effects for n in range(3))
        assert missing <= told[name], (name, line["messages"])
    return sum(told.values())


KILLS, SESSIONS = int(os.environ.get("BATCH_KILLS", "2")), int(os.environ.get("BATCH_SESSIONS", "10"))


def test_killed_workers_lose_nothing_and_repeat_nothing(batch: Batch) -> None:
    driver = batch.start(_with_effects(batch, SESSIONS), "--sessions", "4", "--attempts", "50")
    chance = random.Random(KILLS)
    for _ in range(KILLS):
        wait_until(lambda: driver.poll() is not None or batch.workers(), timeout=60)
        seen = len(batch.count_effects())
        goal = seen + chance.randint(1, max(1, 3 * SESSIONS // (2 * KILLS)))
        wait_until(lambda goal=goal: driver.poll() is not None or len(batch.count_effects()) >= goal, timeout=60)
        if driver.poll() is None and (running := batch.workers()):
            kill(chance.choice(running), signal.SIGKILL)
    results = batch.ended(driver)
    _check_effects(batch, results, SESSIONS)
    assert KILLS > 2 or any(each["attempt"] > 1 for each in results)


def test_a_worker_that_was_cut_off_is_fenced_when_it_comes_back(batch: Batch) -> None:
    tasks = _with_effects(batch, 4)
    driver = batch.start(tasks, "--workers", "2", "--sessions", "2", "--lease", "2")
    wait_until(lambda: len(batch.workers()) == 2 and len(batch.count_effects()) >= 3, timeout=60)
    cut_off = batch.workers()[0]
    os.kill(cut_off, signal.SIGSTOP)
    try:
        wait_until(lambda: batch.status()["done"] == 4, timeout=60)
        effects = batch.count_effects()
    finally:
        kill(cut_off, signal.SIGCONT)
    results = batch.ended(driver)
    _check_effects(batch, results, 4)
    # Each of its two sessions may have been between being allowed to begin a call and running it: that outcome is unknown.
    assert len(batch.count_effects() - effects) <= 2
    assert sorted(each["attempt"] for each in results) == [1, 1, 2, 2]


def test_a_killed_driver_takes_its_workers_along_and_a_resume_goes_on(batch: Batch) -> None:
    driver = batch.start(_with_effects(batch, 6), "--workers", "1", "--sessions", "3")
    wait_until(lambda: batch.status()["done"] >= 1, timeout=60)
    workers = batch.workers()
    driver.kill()
    driver.communicate()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers), timeout=15)
    assert batch.status()["state"] == "stopped"
    results = batch.resume()
    _check_effects(batch, results, 6)
    assert batch.status()["state"] == "done"
    assert min(each["attempt"] for each in results) == 1  # what was done is not done again


def test_a_stop_ends_all_commands_and_a_resume_goes_on(batch: Batch) -> None:
    nap = f"4242.{os.getpid()}"  # of no other run of the tests on this machine
    tasks = [batch.task(f"t{n}", f"echo t{n} >> effects; exec sleep {nap}{n}", "true") for n in range(3)]
    driver = batch.start(tasks, "--workers", "1", "--sessions", "3")
    wait_until(lambda: len(batch.count_effects()) == 3, timeout=60)
    began = time.monotonic()
    subprocess.run(self_command("batch", "stop", str(batch.out)), check=True, timeout=60)
    stopped = time.monotonic() - began
    wait_until(lambda: not commands(nap), timeout=max(0.1, 5.0 - stopped))
    batch.ended(driver, 130)
    for task in tasks:
        task["prompt"] = json.dumps(["true"])
    assert batch.status()["waiting"] == 3
    resumed = batch.command("resume", str(batch.out))
    results = batch.ended(resumed)
    assert [unknown(line) for line in batch.trajectories().values()] == [1, 1, 1]
    assert [each["state"] for each in results] == ["done"] * 3
    assert batch.count_effects() == {f"t{n}": 1 for n in range(3)}


def test_a_task_that_fails_everywhere_fails_alone(batch: Batch) -> None:
    poison = batch.task("poison", "true", toolsets=["no-such-toolset"])
    results = batch.run([poison, batch.task("fine", "echo fine >> effects")], "--attempts", "2", code=1)
    assert [(each["state"], each["attempt"]) for each in results] == [("failed", 2), ("done", 1)]
    assert "no-such-toolset" in results[0]["error"]


def test_a_model_that_is_busy_delays_and_what_was_done_is_not_repeated(batch: Batch, server: ModelServer) -> None:
    busy = Fault(429, headers={"retry-after": "0.01"})
    server._script[:] = [scripted, *[busy] * 6, *[scripted] * 20]
    (result,) = batch.run([batch.task("t", "echo t >> effects", "true")], "--workers", "1", "--attempts", "5")
    assert (result["state"], result["attempt"]) == ("done", 2)  # four refusals end an attempt
    assert batch.count_effects() == {"t": 1}


def test_a_full_disk_stops_nothing_for_good(batch: Batch, tmp_path: Path) -> None:
    with small_disk(tmp_path, "6m") as disk:
        batch.out = disk / "run"
        go = tmp_path / "go"
        wait = f"until [ -e {go} ]; do sleep 0.05; done"
        driver = batch.start(
            [batch.task("t", f"echo first >> effects; {wait}", "echo second >> effects")], "--workers", "1"
        )
        wait_until(lambda: batch.count_effects() == {"first": 1}, timeout=60)
        filler = disk / "filler"
        with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
            while file.write(b"0" * 4096):
                pass
        go.touch()
        wait_until(lambda: "is full" in _written(driver), timeout=60)
        assert batch.count_effects() == {"first": 1}  # its end cannot be recorded, so nothing follows
        filler.unlink()
        (result,) = batch.ended(driver)
        assert (result["state"], result["attempt"]) == ("done", 1)
        assert batch.count_effects() == {"first": 1, "second": 1}


def _written(driver: subprocess.Popen[str]) -> str:
    assert driver.stderr is not None
    ready, _, _ = select.select([driver.stderr], [], [], 0.1)
    # Not its `readline`, which takes more from the pipe than it gives: `select` knows nothing of the rest.
    return os.read(driver.stderr.fileno(), 65536).decode() if ready else ""


def test_a_ledger_in_postgres_is_resumed(batch: Batch, postgres_service: Postgres) -> None:
    driver = batch.start(_with_effects(batch, 3), "--workers", "1", "--sessions", "2", "--ledger", postgres_service.url)
    wait_until(lambda: len(batch.count_effects()) >= 2, timeout=60)
    driver.kill()
    driver.communicate()
    _check_effects(batch, batch.resume(), 3)
    assert not (batch.out / "ledger.db").exists()

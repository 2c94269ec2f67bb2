"""The engine ray, on a cluster of several nodes: a node is killed, the driver, and the head; a stop reaches all nodes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from handrail.batch.folder import request_stop
from handrail.protocols import Answer, Decision
from handrail.store.approvals import ApprovalStore
from tests.services.ray_cluster import RayCluster, ray_cluster
from tests.support import wait_until

from .conftest import Batch, commands, kill, unknown


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with ray_cluster(2) as made:
        yield made


def test_a_driver_without_the_token_is_told_what_to_do(
    batch: Batch, cluster: RayCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "not the cluster's")
    driver = batch.start([batch.task("t", "true")], "--engine", "ray", "--address", cluster.address)
    _, said = driver.communicate(timeout=120)
    assert driver.returncode == 1
    assert "RAY_AUTH_TOKEN" in said


@pytest.fixture
def on_cluster(cluster: RayCluster, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """The options of a batch that has a worker on each node."""
    for name, value in cluster.env.items():
        monkeypatch.setenv(name, value)
    return "--engine", "ray", "--address", cluster.address, "--workers", "2", "--sessions", "3"


def test_a_stop_ends_the_commands_on_every_node(batch: Batch, on_cluster: tuple[str, ...]) -> None:
    nap = f"4343.{os.getpid()}"  # of no other run of the tests on this machine
    tasks = [batch.task(f"t{n}", f"echo t{n} >> effects; exec sleep {nap}{n}") for n in range(6)]
    driver = batch.start(tasks, *on_cluster)
    wait_until(lambda: len(batch.count_effects()) == 6, timeout=120)
    wait_until(lambda: len(commands(nap)) == 6)
    began = time.monotonic()
    request_stop(batch.out)
    wait_until(lambda: not commands(nap), timeout=max(0.1, 5.0 - (time.monotonic() - began)))
    batch.ended(driver, 130)
    assert batch.status()["waiting"] == 6


def test_a_killed_driver_and_a_killed_node_lose_nothing_and_repeat_nothing(
    batch: Batch, home: Path, cluster: RayCluster, on_cluster: tuple[str, ...]
) -> None:
    steps = [f"echo {{0}}.{n} >> effects; sleep 0.5" for n in range(3)]
    tasks = [batch.task(f"t{n}", *(step.format(f"t{n}") for step in steps)) for n in range(6)]
    tasks.append(batch.task("asks", "mkdir -p d/e && rm -rf d && echo asked >> effects"))
    first = batch.start(tasks, *on_cluster)
    wait_until(lambda: len(batch.count_effects()) >= 2, timeout=120)
    kill(first.pid, signal.SIGKILL)
    first.communicate()

    resumed = batch.command("resume", str(batch.out))
    with closing(ApprovalStore(home / "state" / "approvals.db")) as inbox:
        wait_until(lambda: inbox.pending() and batch.status()["running"], timeout=120)
        cluster.kill_node()
        (asked,) = inbox.pending()
        assert inbox.answer(asked.request.id, Answer(Decision.ONCE, by="ada")) is None
    results = batch.ended(resumed)
    assert {each["state"] for each in results} == {"done"}
    effects, lines = batch.count_effects(), batch.trajectories()
    assert max(effects.values()) == 1
    assert effects["asked"] == 1 or unknown(lines["asks"])
    for n in range(6):
        assert sum(f"t{n}.{k}" not in effects for k in range(3)) <= unknown(lines[f"t{n}"])


def test_a_restarted_head_loses_nothing_and_repeats_nothing(
    batch: Batch, cluster: RayCluster, on_cluster: tuple[str, ...]
) -> None:
    steps = [f"echo {{0}}.{n} >> effects; sleep 0.5" for n in range(3)]
    tasks = [batch.task(f"t{n}", *(step.format(f"t{n}") for step in steps)) for n in range(6)]
    driver = batch.start(tasks, *on_cluster)
    wait_until(lambda: len(batch.count_effects()) >= 2, timeout=120)
    cluster.restart()
    results = batch.ended(driver)
    assert {each["state"] for each in results} == {"done"}
    effects, lines = batch.count_effects(), batch.trajectories()
    assert max(effects.values()) == 1
    for n in range(6):
        assert sum(f"t{n}.{k}" not in effects for k in range(3)) <= unknown(lines[f"t{n}"])

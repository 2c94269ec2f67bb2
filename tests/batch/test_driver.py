"""Batches from end to end: real drivers and workers, killed, stopped and resumed."""

from __future__ import annotations

import json

from .conftest import Batch


def test_every_task_is_run_once_and_its_trajectory_kept(batch: Batch) -> None:
    tasks = [batch.task(f"t{n}", f"echo t{n} >> effects", "true", reward="grep -c . effects") for n in range(6)]
    results = batch.run(tasks, "--workers", "2", "--sessions", "3")
    assert [(each["id"], each["state"], each["attempt"]) for each in results] == [(f"t{n}", "done", 1) for n in range(6)]
    assert all(each["reward"] >= 1 and each["ended_by"] == "answered" for each in results)
    assert batch.count_effects() == {f"t{n}": 1 for n in range(6)}
    lines = batch.trajectories()
    assert [message["role"] for message in lines["t0"]["messages"]] == ["user", *["assistant", "tool"] * 2, "assistant"]
    assert json.loads((batch.out / "summary.json").read_text())["done"] == 6

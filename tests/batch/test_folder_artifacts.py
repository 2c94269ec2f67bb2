"""Large things of a batch at fsspec URLs."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import fsspec
import pytest

from handrail.batch.folder import Artifacts
from handrail.errors import ToolFailed
from handrail.files.local import LocalFiles

from .conftest import Batch


def test_trajectories_and_kept_files_are_at_their_urls(batch: Batch) -> None:
    url = (batch.folder / "store").as_uri()
    made = "mkdir -p dist/deep; seq 9 > dist/deep/n; echo one > dist/one; ln -s /etc/passwd dist/link; ln -s /etc secret; cd /"
    tasks = [batch.task("t", made, keep=["dist", "secret", "missing"]), batch.task("u", "true")]
    first, second = batch.run(tasks, "--workers", "1", "--artifacts", url)
    run = json.loads((batch.out / "batch.json").read_text())["run"]
    assert first["artifacts"] == {"dist": f"{url}/{run}/t.1/dist", "secret": None, "missing": None}
    assert "artifacts" not in second
    kept = batch.folder / "store" / run / "t.1" / "dist"
    assert sorted(each.name for each in kept.rglob("*") if each.is_file()) == ["n", "one"]
    assert (kept / "deep/n").read_text() == "".join(f"{n}\n" for n in range(1, 10))
    line = batch.trajectories()["t"]
    assert "messages" not in line
    with fsspec.open(line["trajectory"]) as file:
        assert json.load(file)["messages"][-1]["content"] == "done"


def test_files_that_would_be_kept_nowhere_are_refused_at_once(batch: Batch) -> None:
    driver = batch.start([batch.task("t", "true", keep=["x"])])
    assert "--artifacts" in driver.communicate(timeout=60)[1]
    assert (driver.returncode, batch.out.joinpath("batch.json").exists()) == (2, False)


def test_a_store_that_cannot_be_written_is_said_before_the_first_task(batch: Batch) -> None:
    (batch.folder / "file").write_text("")
    driver = batch.start([batch.task("t", "true")], "--artifacts", str(batch.folder / "file"))
    assert "cannot be kept at" in driver.communicate(timeout=60)[1]
    assert driver.returncode != 0


def test_an_attempt_that_cannot_write_its_artifacts_fails_and_the_next_repeats_no_effect(batch: Batch) -> None:
    store = batch.folder / "store"
    tasks = [batch.task("t", f"rmdir {store} && echo > {store}; echo t >> effects")]
    (result,) = batch.run(tasks, "--attempts", "2", "--artifacts", str(store), code=1)
    assert (result["state"], result["attempt"]) == ("failed", 2)
    assert "cannot be kept" in result["error"]
    assert batch.count_effects() == {"t": 1}


def test_a_large_file_goes_in_pieces_and_what_was_refused_is_removed(tmp_path: Path) -> None:
    big = tmp_path / "big"
    big.write_bytes(os.urandom(5_000_000))
    artifacts = Artifacts("memory://kept/here")
    artifacts.check()
    url = artifacts.copy(LocalFiles(str(tmp_path), max_read_bytes=1_000_000), str(big), "run/t.1/big")
    assert url == "memory:///kept/here/run/t.1/big"
    system = fsspec.filesystem("memory")
    assert system.cat("/kept/here/run/t.1/big") == big.read_bytes()
    assert artifacts.write_json("run/t.1.json", {"a": "ü"}) == "memory:///kept/here/run/t.1.json"
    artifacts.remove("run/t.1")
    artifacts.remove("run/never")
    assert system.find("/kept") == ["/kept/here/run/t.1.json"]


def test_without_fsspec_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ToolFailed, match=r"handrail\[fsspec\]"):
        Artifacts("memory://x")
    monkeypatch.undo()
    with pytest.raises(ToolFailed, match="cannot be kept"):
        Artifacts("no-such-protocol://x")

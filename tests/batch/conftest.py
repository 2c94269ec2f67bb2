"""Batches with a scripted model: a task's prompt is the list of its commands, so that any attempt can be answered."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from handrail.base.own_process import self_command
from handrail.batch.folder import status
from handrail.environments.shell_host import proc
from handrail.store.ledger import SqliteLedger
from handrail.testing import ModelReply, ModelServer, call

MANY = 4000


def scripted(messages: Any, tools: Any) -> ModelReply:
    """The next command of the prompt that has not been called yet."""
    said = next(message["content"] for message in messages if message["role"] == "user")
    steps = json.loads(said)
    number = sum(message["role"] == "assistant" for message in messages)
    if number >= len(steps):
        return ModelReply("done")
    step = steps[number]
    if isinstance(step, str):
        return ModelReply(tool_calls=[call("terminal", f"c{number}", command=step)])
    return ModelReply(tool_calls=[call(step["tool"], f"c{number}", **step["arguments"])])


@pytest.fixture
def server(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with ModelServer([scripted] * MANY) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "a key")
        monkeypatch.setenv("HANDRAIL_MODEL", "scripted")
        yield server


class Batch:
    """A batch of the command line, in processes of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out = folder, folder / "run"
        self.effects = folder / "effects"
        self.driver: subprocess.Popen[str] | None = None

    def write(self, tasks: Sequence[dict[str, Any]]) -> Path:
        path = self.folder / "tasks.jsonl"
        path.write_text("".join(json.dumps(task) + "\n" for task in tasks))
        return path

    def task(self, name: str, *steps: Any, **more: Any) -> dict[str, Any]:
        """It works in the test's folder, which outlives workers, and where effects can be counted."""
        return {
            "id": name,
            "prompt": json.dumps(list(steps)),
            "toolsets": ["terminal", "file"],
            "cwd": str(self.folder),
            **more,
        }

    def start(self, tasks: Sequence[dict[str, Any]], *options: str) -> subprocess.Popen[str]:
        return self.command(str(self.write(tasks)), "--out", str(self.out), *options)

    def run(self, tasks: Sequence[dict[str, Any]], *options: str, code: int = 0) -> list[dict[str, Any]]:
        return self.ended(self.start(tasks, *options), code)

    def resume(self, code: int = 0) -> list[dict[str, Any]]:
        return self.ended(self.command("resume", str(self.out)), code)

    def ended(self, driver: subprocess.Popen[str], code: int = 0) -> list[dict[str, Any]]:
        out, err = driver.communicate(timeout=120)
        assert driver.returncode == code, (driver.returncode, out, err, self.log())
        return self.results()

    def results(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.out / "results.jsonl").read_text().splitlines()]

    def trajectories(self) -> dict[str, dict[str, Any]]:
        lines = [json.loads(line) for line in (self.out / "trajectories.jsonl").read_text().splitlines()]
        assert len({line["id"] for line in lines}) == len(lines), "a trajectory is there twice"
        return {line["id"]: line for line in lines}

    def status(self) -> Any:
        return status(self.out) if (self.out / "batch.json").exists() else {"state": "", "done": 0, "running": 0}

    def begun(self) -> int:
        """How many calls the journal has."""
        with contextlib.closing(SqliteLedger(self.out / "ledger.db")) as ledger, ledger.transaction() as connection:
            return int(connection.execute("SELECT count(*) FROM journal").fetchone()[0])

    def log(self) -> str:
        path = self.out / "workers.log"
        return path.read_text() if path.exists() else ""

    def command(self, *words: str) -> subprocess.Popen[str]:
        self.driver = subprocess.Popen(
            self_command("batch", *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder
        )
        return self.driver

    def count_effects(self) -> Counter[str]:
        return Counter(self.effects.read_text().split() if self.effects.exists() else [])

    def workers(self) -> list[int]:
        """The pids of the driver's workers."""
        assert self.driver is not None
        found = Path(f"/proc/{self.driver.pid}/task/{self.driver.pid}/children").read_text().split()
        return [int(pid) for pid in found if "worker" in proc.command_line(int(pid))]


@pytest.fixture
def batch(server: ModelServer, tmp_path: Path) -> Iterator[Batch]:
    made = Batch(tmp_path)
    yield made
    if made.driver is not None and made.driver.poll() is None:
        made.driver.kill()
    if made.driver is not None:
        made.driver.communicate()


def unknown(line: dict[str, Any]) -> int:
    """How many calls the model was told nothing certain about."""
    return sum('"unknown_outcome"' in str(message.get("content")) for message in line["messages"])


def kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def commands(text: str) -> list[str]:
    """The sleeps that run on this machine and have the text in them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [each for each in found if each.startswith("sleep ") and text in each]

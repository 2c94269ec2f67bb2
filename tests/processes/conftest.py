"""A table of real processes, in a home of the test's own, that leaves nothing running."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.core.builtin import registry as builtin
from handrail.environments.tasks import TaskEnvironments
from handrail.processes.table import ProcessTable, Wanted
from handrail.processes.tracked import TrackedProcess
from handrail.runtime.dispatch import Runtime
from handrail.settings.schema import Config
from handrail.settings.sections import TerminalConfig
from handrail.store.processes import ProcessRecords
from handrail.testing import OpenGate
from handrail.tools.terminal import process, process_call

from ..environments.conftest import _nothing_is_left, _warm_fork_server, protection, work  # noqa: F401  fixtures
from ..support import PATIENCE_SECONDS

Start = Callable[..., TrackedProcess]
Process = Callable[..., dict[str, Any]]

assert process  # it registers the tool


@pytest.fixture
def environments(work: Path) -> Iterator[TaskEnvironments]:  # noqa: F811  the fixture
    with TaskEnvironments(Config(terminal=TerminalConfig(cwd=str(work)))) as made:
        yield made


@pytest.fixture
def records(home: Path) -> ProcessRecords:
    return ProcessRecords(home / "state" / "process-table")


@pytest.fixture
def table(home: Path, records: ProcessRecords, environments: TaskEnvironments) -> Iterator[ProcessTable]:
    made = ProcessTable(records, environments)
    yield made
    forget_all(made)
    made.close()
    assert left_of(home) == []


@pytest.fixture
def start(table: ProcessTable) -> Start:
    """Start a process of the task `t1`."""

    def start(command: str, *, task_id: str | None = "t1", **wanted: object) -> TrackedProcess:
        return table.start(command, task_id=task_id, session_id="s1", wanted=Wanted(**wanted))  # type: ignore[arg-type]

    return start


@pytest.fixture
def gate() -> OpenGate:
    return OpenGate()


@pytest.fixture
def here(table: ProcessTable, environments: TaskEnvironments, gate: OpenGate) -> Runtime:
    return Runtime(builtin, environments=environments, processes=table, gate=gate)


@pytest.fixture
def process(here: Runtime, monkeypatch: pytest.MonkeyPatch) -> Process:
    """Call the tool as the task t1. It waits for what a program makes of its input as long as it takes on a busy machine."""
    monkeypatch.setattr(process_call, "_SETTLE_SECONDS", PATIENCE_SECONDS)

    def process(action: str, session_id: str | None = None, **arguments: Any) -> dict[str, Any]:
        known = {"session_id": session_id} if session_id else {}
        outcome = here.handle("process", {"action": action, **known, **arguments}, "t1")
        answer: dict[str, Any] = json.loads(outcome)  # type: ignore[arg-type]
        return answer

    return process


def forget_all(table: ProcessTable) -> None:
    for one in table.list():
        table.forget(one.id)


def left_of(home: Path) -> list[str]:
    """What is still known of processes, by the environments and by the table."""
    folders = (home / "state" / "processes", home / "state" / "process-table")
    return [str(path) for folder in folders if folder.exists() for path in folder.iterdir()]


def output(tracked: TrackedProcess) -> str:
    return tracked.tail(1 << 20).data.decode()

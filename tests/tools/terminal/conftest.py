"""The tool as a model calls it, on real shells in a folder of the test's own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.core.builtin import builtin_tools
from handrail.core.builtin import registry as builtin
from handrail.environments.tasks import TaskEnvironments
from handrail.processes.table import ProcessTable
from handrail.runtime.dispatch import Runtime
from handrail.settings.schema import Config
from handrail.settings.sections import TerminalConfig
from handrail.store.processes import ProcessRecords
from handrail.testing import MemoryResultStore, OpenGate

from ...environments.conftest import _nothing_is_left, _warm_fork_server, protection, work  # noqa: F401  fixtures
from ...processes.conftest import process, start  # noqa: F401  fixtures

Terminal = Callable[..., dict[str, Any]]


@pytest.fixture
def limits() -> TerminalConfig:
    """What a test may replace."""
    return TerminalConfig()


@pytest.fixture
def environments(work: Path, limits: TerminalConfig) -> Iterator[TaskEnvironments]:  # noqa: F811  the fixture
    from dataclasses import replace

    with TaskEnvironments(Config(terminal=replace(limits, cwd=str(work)))) as made:
        yield made


@pytest.fixture
def table(home: Path, environments: TaskEnvironments) -> Iterator[ProcessTable]:
    made = ProcessTable(ProcessRecords(home / "state" / "process-table"), environments)
    yield made
    for one in made.list():
        made.forget(one.id)
    made.close()


@pytest.fixture
def stored() -> MemoryResultStore:
    return MemoryResultStore()


@pytest.fixture
def gate() -> OpenGate:
    return OpenGate()


@pytest.fixture
def here(environments: TaskEnvironments, table: ProcessTable, stored: MemoryResultStore, gate: OpenGate) -> Runtime:
    builtin_tools()
    return Runtime(builtin, environments=environments, processes=table, results=stored, gate=gate)


@pytest.fixture
def terminal(here: Runtime) -> Terminal:
    """Call the tool as the task t1, or another."""

    def terminal(
        command: str, *, task_id: str | None = "t1", more: dict[str, Any] | None = None, **arguments: Any
    ) -> Any:
        outcome = here.handle("terminal", {"command": command, **arguments}, task_id, **(more or {}))
        return json.loads(outcome)  # type: ignore[arg-type]

    return terminal

"""The tool as a model calls it, on real shells in a folder of the test's own."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from handrail.core.builtin import builtin_tools
from handrail.core.builtin import registry as builtin
from handrail.environments.tasks import TaskEnvironments
from handrail.runtime.dispatch import Runtime
from handrail.settings.schema import Config
from handrail.settings.sections import CodeConfig, TerminalConfig
from handrail.testing import MemoryResultStore, OpenGate

from ...environments.conftest import _nothing_is_left, _warm_fork_server, protection, work  # noqa: F401  fixtures

Script = Callable[..., dict[str, Any]]


def runtime(environments: TaskEnvironments, gate: Any = None) -> Runtime:
    builtin_tools()
    return Runtime(
        builtin,
        config=environments.config,
        environments=environments,
        results=MemoryResultStore(),
        gate=gate or OpenGate(),
    )


def scripts(here: Runtime) -> Script:
    """Run a script as the task t1."""

    def script(code: str, *, more: dict[str, Any] | None = None, **arguments: Any) -> Any:
        outcome = here.handle("execute_code", {"code": dedent(code), **arguments}, "t1", **(more or {}))
        return json.loads(outcome)  # type: ignore[arg-type]

    return script


@pytest.fixture
def limits() -> CodeConfig:
    """What a test may replace."""
    return CodeConfig(python=sys.executable)


@pytest.fixture
def environments(work: Path, limits: CodeConfig) -> Iterator[TaskEnvironments]:  # noqa: F811  the fixture
    with TaskEnvironments(Config(terminal=TerminalConfig(cwd=str(work)), code=limits)) as made:
        yield made


@pytest.fixture
def gate() -> OpenGate:
    return OpenGate()


@pytest.fixture
def here(environments: TaskEnvironments, gate: OpenGate) -> Runtime:
    return runtime(environments, gate)


@pytest.fixture
def script(here: Runtime) -> Script:
    return scripts(here)

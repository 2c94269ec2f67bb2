"""Scripts where no socket of this machine can be reached: in a sandbox, in a container, on another host."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.environments.tasks import TaskEnvironments
from handrail.settings.schema import Config
from handrail.settings.sections import CodeConfig, TerminalConfig

from .conftest import Script, runtime, scripts

PLACES = {"framed": None, "sandboxed": None, "docker": "docker_service", "ssh": "ssh_service"}


@pytest.fixture(scope="session", params=PLACES)
def service(request: pytest.FixtureRequest) -> tuple[str, Any]:
    """A place, and what it takes: of the session, so that it is there before the test begins."""
    needed = PLACES[request.param]
    return request.param, request.getfixturevalue(needed) if needed else None


@pytest.fixture
def place(service: tuple[str, Any], monkeypatch: pytest.MonkeyPatch, work: Path) -> Iterator[TaskEnvironments]:
    name, component = service
    backend, python = "local", sys.executable
    options: dict[str, Any] = {}
    cwd: str | None = str(work)
    if name == "framed":  # this machine, as if it were another
        monkeypatch.setattr(TaskEnvironments, "has_host_paths", lambda *_: False)
    elif name == "sandboxed":
        options, python = {"sandbox": True}, "/usr/bin/python3"
    elif name == "docker":
        backend, options, python, cwd = name, {"image": component.image}, "python3", None
        for variable, value in component.env.items():
            monkeypatch.setenv(variable, value)
    else:
        options = {"host": component.alias, "config_file": str(component.config)}
        backend, python, cwd = name, "python3", None
    terminal = TerminalConfig(backend=backend, backends={backend: options}, cwd=cwd)
    with TaskEnvironments(Config(terminal=terminal, code=CodeConfig(python=python))) as made:
        yield made


@pytest.fixture
def script(place: TaskEnvironments) -> Script:
    return scripts(runtime(place))


def test_a_script_calls_tools_there_and_ends_as_it_would_here(script: Script) -> None:
    answer = script(
        """
        import sys
        from concurrent.futures import ThreadPoolExecutor
        from handrail_tools import ToolError, read_file, terminal, write_file
        write_file("handrail-code-test.txt", "é" * 100_000)
        content = read_file("handrail-code-test.txt")["content"]
        print(content.count("é") > 100, open("handrail-code-test.txt").read() == "é" * 100_000)
        with ThreadPoolExecutor(4) as threads:
            print([r["output"] for r in threads.map(lambda n: terminal(f"echo {n}"), range(8))])
        print(terminal("rm handrail-code-test.txt; pwd")["output"].strip() == __import__("os").getcwd())
        try:
            read_file("missing")
        except ToolError as error:
            print(error.error_type)
        sys.exit(4)
        """
    )
    assert answer["output"].splitlines() == [
        "True True",
        str([f"{n}\n" for n in range(8)]),
        "True",
        "not_found",
    ]
    assert answer["exit_code"] == 4
    assert answer["tool_calls"] == 12


def test_much_output_and_a_time_limit_hold_there(script: Script) -> None:
    answer = script(
        """
        import os, time
        for _ in range(64):
            os.write(1, b"x" * (1 << 20))
        print("\\nall is out", flush=True)
        """
    )
    assert answer["exit_code"] == 0
    assert answer["output"].endswith("all is out\n")
    answer = script("import time; print('begun', flush=True); time.sleep(1000)", timeout=5)
    assert (answer["error_type"], answer["output"]) == ("timeout", "begun\n")

"""Scripts where no socket of this machine can be reached: in a sandbox, in a container, on another host."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.config import CodeConfig, Config, TerminalConfig
from handrail.tools.environments.tasks import TaskEnvironments

from ...services.docker import Docker
from ...services.sshd import Ssh
from .conftest import Script, runtime, scripts

Settings = tuple[str, dict[str, Any], str]


def framed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """This machine, as if it were another."""
    monkeypatch.setattr(TaskEnvironments, "has_host_paths", lambda *_: False)
    return "local", {}, sys.executable


def sandboxed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Settings:
    return "local", {"sandbox": {"mechanism": "bubblewrap"}}, "/usr/bin/python3"


def docker(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Settings:
    service: Docker = request.getfixturevalue("docker_service")
    for name, value in service.env.items():
        monkeypatch.setenv(name, value)
    return "docker", {"image": service.image}, "python3"


def ssh(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Settings:
    service: Ssh = request.getfixturevalue("ssh_service")
    return "ssh", {"host": service.alias, "config_file": str(service.config)}, "python3"


@pytest.fixture(params=[framed, sandboxed, docker, ssh], ids=lambda place: place.__name__)
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, work: Path) -> Iterator[TaskEnvironments]:
    make: Callable[..., Settings] = request.param
    backend, options, python = make(request, monkeypatch)
    cwd = str(work) if backend == "local" else None
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
        "tool_failed",
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
    answer = script("import time; print('begun', flush=True); time.sleep(1000)", timeout=0.5)
    assert (answer["error_type"], answer["output"]) == ("timeout", "begun\n")

"""Servers that others wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from handrail.mcp_client.connection import State
from handrail.runtime.dispatch import Runtime
from handrail.settings.services import McpServerConfig

from ..mcp_servers.others import program
from ..services.components import require
from ..support import error_in
from .conftest import Connect


def ready(connect: Connect, name: str, *args: str, **settings: Any) -> None:
    tools = connect(other=McpServerConfig(command=program(name), args=args, **settings))
    status = tools.connections.status()["other"]
    assert status.state is State.READY, status.error


def test_time(connect: Connect, runtime: Runtime) -> None:
    ready(connect, "mcp-server-time")
    answer = json.loads(runtime.handle("mcp__other__get_current_time", {"timezone": "UTC"}))  # type: ignore[arg-type]
    assert "UTC" in json.dumps(answer)
    assert error_in(runtime.handle("mcp__other__get_current_time", {"timezone": "Nowhere/Else"}))


def test_git(connect: Connect, runtime: Runtime, tmp_path: Path) -> None:
    require("git", packages="git")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "new.txt").write_text("x")
    ready(connect, "mcp-server-git", "--repository", str(tmp_path))
    assert "new.txt" in str(runtime.handle("mcp__other__git_status", {"repo_path": str(tmp_path)}))


def test_fetch(connect: Connect, runtime: Runtime) -> None:
    ready(connect, "mcp-server-fetch")
    assert error_in(runtime.handle("mcp__other__fetch", {"url": "http://127.0.0.1:9/"}))["error_type"] == "tool_failed"


def test_everything(connect: Connect, runtime: Runtime) -> None:
    ready(connect, "mcp-server-everything")
    assert "hello" in str(runtime.handle("mcp__other__echo", {"message": "hello"}))
    researched = runtime.handle("mcp__other__simulate-research-query", {"topic": "rails"})  # runs only as a task
    assert "Research Report: rails" in str(researched)


def test_filesystem(connect: Connect, runtime: Runtime, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("found it")
    ready(connect, "mcp-server-filesystem", str(tmp_path))
    read = runtime.handle("mcp__other__read_text_file", {"path": str(tmp_path / "note.txt")})
    assert "found it" in str(read)


def test_memory(connect: Connect, runtime: Runtime, tmp_path: Path) -> None:
    ready(connect, "mcp-server-memory", env={"MEMORY_FILE_PATH": str(tmp_path / "memory.json")})
    entity = {"name": "Ann", "entityType": "person", "observations": ["likes tea"]}
    runtime.handle("mcp__other__create_entities", {"entities": [entity]})
    assert "likes tea" in str(runtime.handle("mcp__other__read_graph", {}))


def test_the_first_lines_of_the_how_to_work_as_typed(home: Path, tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "use-mcp-servers.md"
    lines = page.read_text().partition("```bash\n")[2].partition("```")[0]
    path = os.pathsep.join([str(Path(program("mcp-server-time")).parent), str(Path(sys.executable).parent), os.defpath])
    env = {"PATH": path, "HANDRAIL_HOME": str(home), "HOME": str(tmp_path)}
    ran = subprocess.run(["bash", "-ec", lines], capture_output=True, text=True, env=env, cwd=tmp_path, check=False)
    assert ran.returncode == 0, ran.stderr
    assert '"timezone": "UTC"' in ran.stdout

"""Which servers there are, and what their settings mean."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from handrail.config.trust import Trust
from handrail.errors import ConfigError
from handrail.mcp_client.server_config import TRUST_KIND, expanded, find_servers, project_digest
from handrail.settings.services import McpServerConfig


def test_variables_are_filled_in_everywhere() -> None:
    settings = McpServerConfig(
        command="${BIN}/x", args=("${A:-one}", "$A"), env={"K": "${K:-}"}, headers={"H": "Bearer ${T}"}
    )
    filled = expanded(settings, {"BIN": "/opt", "T": "t"})
    assert (filled.command, filled.args) == ("/opt/x", ("one", "$A"))
    assert (filled.env, filled.headers) == ({"K": ""}, {"H": "Bearer t"})
    with pytest.raises(ConfigError, match="BIN is not set"):
        expanded(settings, {"T": "t"})


def found(project: Path, trust: Trust) -> dict[str, str]:
    mine = {"mine": McpServerConfig(command="mine")}
    servers = find_servers(mine, config_file=Path("config.yaml"), project=project, trust=trust)
    return {server.name: server.problem for server in servers}


def test_a_projects_file_cannot_take_the_name_of_a_users_server(tmp_path: Path) -> None:
    trust = Trust(tmp_path / "trust.json")
    file = tmp_path / ".mcp.json"
    both = {"mine": {"command": "theirs"}, "far": {"type": "streamable-http", "url": "http://x/mcp"}}
    file.write_text(json.dumps({"mcpServers": both}))
    assert found(tmp_path, trust)["far"]
    trust.trust(TRUST_KIND, file, project_digest(file))
    assert found(tmp_path, trust) == {"mine": "", "far": ""}


@pytest.mark.parametrize("text", ["{", "[]", '{"mcpServers": 5}'])
def test_a_file_that_is_none_is_told_and_the_users_servers_stay(tmp_path: Path, text: str) -> None:
    (tmp_path / ".mcp.json").write_text(text)
    problems = found(tmp_path, Trust(tmp_path / "trust.json"))
    assert problems.pop("mine") == ""
    assert all(problems.values())


def test_an_entry_that_is_wrong_hurts_only_itself(tmp_path: Path) -> None:
    servers = {"a": {"command": 5}, "b": "x", "c": {"command": "c", "unknown": True}}
    file = tmp_path / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    trust = Trust(tmp_path / "trust.json")
    trust.trust(TRUST_KIND, file, project_digest(file))
    problems = found(tmp_path, trust)
    assert problems["a"]
    assert problems["b"]
    assert problems["c"] == ""


@pytest.mark.parametrize(
    ("server", "program"),
    [
        ({"command": "./server.py"}, "server.py"),
        ({"command": "python3", "args": ["tools/server.py"]}, "tools/server.py"),
        ({"command": "python3", "args": ["-m", "tools.server"]}, "tools/server.py"),
        ({"command": "python3", "args": ["-m", "tools"]}, "tools/__main__.py"),
        ({"command": "node", "args": ["--require=./a.js", "x"]}, "a.js"),
        ({"command": "sh", "args": ["run.sh"], "cwd": "tools"}, "tools/run.sh"),
    ],
)
def test_trust_covers_the_projects_program_that_a_server_starts(
    tmp_path: Path, server: dict[str, object], program: str
) -> None:
    file, trust = tmp_path / ".mcp.json", Trust(tmp_path / "trust.json")
    file.write_text(json.dumps({"mcpServers": {"near": server}}))
    (tmp_path / program).parent.mkdir(exist_ok=True)
    (tmp_path / program).write_text("fine")
    trust.trust(TRUST_KIND, file, project_digest(file))
    assert found(tmp_path, trust)["near"] == ""
    (tmp_path / program).write_text("evil")
    assert "has changed since it was trusted" in found(tmp_path, trust)["near"]

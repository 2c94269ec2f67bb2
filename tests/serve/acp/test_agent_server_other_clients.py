"""Clients that others wrote. scripts/services/install-acp.sh installs them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from acp import schema

from handrail.testing import ModelReply, call
from handrail.testing.model_server import ModelServer

from ... import fork_server
from ...services.components import absent
from ...support import PATIENCE_SECONDS

FOLDER = Path(os.environ.get("HANDRAIL_TEST_ACP", Path.home() / ".cache" / "handrail-tests" / "acp"))
# What acplint 0.1.0 fails because it asks for something else than the protocol: a version that is a text, `content` in place of
# `prompt`, a `label` of options, and updates whose names are written in camel case.
AGAINST_THE_PROTOCOL = {
    "initialize_v1", "protocol_version_returned", "schema_initialize", "new_session", "schema_session_new",
    "session_update_schema_valid", "schema_notification", "agent_message_chunk_received", "prompt_stop_reason",
}  # fmt: skip


def program(*parts: str) -> str:
    path = FOLDER.joinpath(*parts)
    if not path.exists():
        absent(parts[-1], "run scripts/services/install-acp.sh")
    return str(path)


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    (tmp_path / "work" / "victim").mkdir(parents=True)
    return tmp_path / "work"


@pytest.fixture
def env(home: Path, cwd: Path) -> Iterator[dict[str, str]]:
    def reply(messages: Any, tools: Any) -> ModelReply:
        last = messages[-1]
        if last["role"] == "tool":
            return ModelReply("Done.")
        if "write" in str(last["content"]):
            return ModelReply("", [call("write_file", path="made.txt", content="made\n")])
        return ModelReply("", [call("terminal", command="rm -rf victim")])

    with ModelServer([reply] * 200) as model:
        yield {
            "HANDRAIL_HOME": str(home), "HOME": str(cwd.parent), "PATH": os.environ["PATH"], "HANDRAIL_MODEL": "scripted",
            "OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "k",
        }  # fmt: skip


def acpx(cwd: Path, env: dict[str, str], *words: str, agent: str = "") -> list[dict[str, Any]]:
    node, client = FOLDER / "node_modules" / ".bin" / "node", program("node_modules", ".bin", "acpx")
    start = [str(node)] if node.exists() else ["node"]
    command = shlex.join(fork_server.command("-m", "handrail", "acp", *agent.split()))
    words = (*start, client, "--format", "json", *words[:-1], "--agent", command, "exec", words[-1])
    ran = subprocess.run(
        words, cwd=cwd, env=env, capture_output=True, text=True, timeout=PATIENCE_SECONDS * 4, check=False
    )
    found = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    assert any("stopReason" in str(each.get("result")) for each in found), ran.stdout + ran.stderr
    return found


def updates(messages: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    found = [each["params"]["update"] for each in messages if each.get("method") == "session/update"]
    return [each for each in found if each["sessionUpdate"] == kind]


def test_acpx_allows_denies_and_shows_diffs(cwd: Path, env: dict[str, str]) -> None:
    denied = acpx(cwd, env, "--deny-all", "remove it")
    assert (cwd / "victim").exists()
    assert updates(denied, "tool_call_update")[-1]["status"] == "failed"
    allowed = acpx(cwd, env, "--approve-all", "remove it")
    assert not (cwd / "victim").exists()
    asked = next(each for each in allowed if each.get("method") == "session/request_permission")
    assert asked["params"]["toolCall"]["toolCallId"] == updates(allowed, "tool_call")[0]["toolCallId"]
    written = acpx(cwd, env, "--approve-all", "write it")
    assert (cwd / "made.txt").read_text() == "made\n"
    diff = updates(written, "tool_call_update")[-1]["content"][0]
    assert (diff["type"], diff["newText"]) == ("diff", "made\n")


def test_commands_run_in_the_terminals_of_acpx(cwd: Path, env: dict[str, str]) -> None:
    ran = acpx(cwd, env, "--approve-all", "remove it", agent="--editor-terminals")
    assert not (cwd / "victim").exists()
    assert any(each.get("method") == "terminal/create" for each in ran)
    assert updates(ran, "tool_call_update")[-1]["status"] == "completed"


def test_acplint_finds_nothing_that_is_the_protocol(cwd: Path, env: dict[str, str]) -> None:
    """Each exception is checked to be one: when the linter learns the protocol, it is to be taken off the list."""
    report = cwd / "report.json"
    words = [program("py", "bin", "acplint"), "--agent", sys.executable, "--agent-args", "-m handrail acp"]
    words += [
        "--cwd",
        str(cwd),
        "--output",
        "json",
        "--output-file",
        str(report),
        "--timeout",
        str(PATIENCE_SECONDS * 2),
    ]
    subprocess.run(words, cwd=cwd, env=env, capture_output=True, timeout=PATIENCE_SECONDS * 8, check=False)
    results = json.loads(report.read_text())["results"]
    failed = {each["name"].rstrip("_0123456789") if "notification" in each["name"] else each["name"]
              for each in results if each["status"] != "PASS"}  # fmt: skip
    assert failed == AGAINST_THE_PROTOCOL
    assert schema.InitializeResponse.model_fields["protocol_version"].annotation is int
    assert "prompt" in schema.PromptRequest.model_fields
    assert "label" not in schema.SessionConfigOptionSelect.model_fields

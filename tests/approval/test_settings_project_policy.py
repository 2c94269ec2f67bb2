"""A project's own file about approvals can only tighten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handrail.model_tools import handle_function_call, reset

from ..support import error_in, strict_loads


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    (folder / ".handrail").mkdir(parents=True)
    monkeypatch.chdir(folder)
    reset()
    return folder / ".handrail" / "config.yaml"


def run(command: str) -> Any:
    return handle_function_call("terminal", {"command": command})


def test_what_a_project_denies_is_denied_although_the_user_allows_it(project: Path, home: Path) -> None:
    (home / "config.yaml").write_text("approvals:\n  allow: [echo]\n")
    project.write_text("approvals:\n  deny: [echo secret]\n")
    assert error_in(run("echo secret"))["error_type"] == "denied"
    assert strict_loads(run("echo other"))["output"] == "other\n"


def test_a_rule_of_a_project_asks_but_does_not_replace_a_users(project: Path, home: Path) -> None:
    rule = (
        "approval_rules:\n  team.{name}:\n    severity: {severity}\n    why: by hand\n"
        "    uses: [make {what}]\n    match: [make {what}]\n    spare: [make test]\n"
    )
    (home / "config.yaml").write_text(rule.format(name="deploy", severity="block", what="deploy"))
    project.write_text(rule.format(name="deploy", severity="note", what="deploy"))
    assert "by hand" in error_in(run("make deploy"))["error"]
    project.write_text(rule.format(name="release", severity="ask", what="release"))
    assert error_in(run("make release"))["rules"] == ["team.release"]


@pytest.mark.parametrize(
    "text",
    [
        "approvals:\n  allow: [rm]\n",
        "approvals:\n  mode: 'off'\n",
        "command_allowlist: [fs.rm.recursive@project:/x]\n",
        "terminal:\n  backend: docker\n",
        "approvals: [",
    ],
)
def test_a_file_that_wants_more_than_to_tighten_lets_nothing_pass_and_is_named(project: Path, text: str) -> None:
    project.write_text(text)
    told = error_in(run("rm -rf build"))
    assert told["error_type"] == "denied"
    assert "config.yaml" in told["error"]


def test_an_agent_cannot_take_the_file_away(project: Path) -> None:
    project.write_text("approvals:\n  deny: [echo secret]\n")
    for command in (f"rm {project}", "rm .handrail/config.yaml", "cd .handrail && echo > config.yaml"):
        assert error_in(run(command))["error_type"] == "denied"
    assert error_in(handle_function_call("write_file", {"path": str(project), "content": ""}))["error_type"] == "denied"
    assert project.read_text()


def test_a_change_of_the_file_counts_from_the_next_action_on(project: Path) -> None:
    assert strict_loads(run("echo secret"))["output"] == "secret\n"
    project.write_text("approvals:\n  deny: [echo secret]\n")
    assert error_in(run("echo secret"))["error_type"] == "denied"

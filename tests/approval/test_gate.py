"""What the gate decides without asking, and in which order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from handrail.protocols import Action, ActionKind, Decision
from handrail.testing import RecordingApprover
from tests.support import error_in

from .gate_support import FORBIDDEN, HARMLESS, IN_HOME, IN_PROJECT, REMOTE, UNKNOWN, command, gate, review, shell

DELETES_HERE = "fs.rm.recursive@project:/srv/app"


def test_what_is_harmless_passes_and_nobody_is_asked() -> None:
    approver = RecordingApprover()
    assert review(gate(), HARMLESS, approver=approver) == "allowed"
    assert approver.requests == []


def test_a_dangerous_command_runs_only_after_a_yes() -> None:
    ran: list[str] = []
    runtime = shell(ran, gate(), RecordingApprover([Decision.DENY, Decision.ONCE]))
    assert error_in(runtime.handle("terminal", {"command": IN_PROJECT}))["error_type"] == "denied"
    assert ran == []
    assert runtime.handle("terminal", {"command": IN_PROJECT}) == "done"
    assert ran == [IN_PROJECT]


def test_a_reason_is_told_once_however_often_the_command_gives_it() -> None:
    assert review(gate(), f"{IN_PROJECT}; {IN_PROJECT}").count("fs.rm.recursive") == 1


@pytest.mark.parametrize("settings", [{}, {"yolo": True}, {"mode": "off"}, {"allow": ("rm -rf /",)}], ids=str)
def test_nothing_lifts_the_floor(settings: dict[str, Any]) -> None:
    approver = RecordingApprover([Decision.ALWAYS] * 3)
    told = review(gate(**settings), FORBIDDEN, approver=approver)
    assert told.startswith("Not run:")
    assert "no setting allows it" in told
    assert approver.requests == []


@pytest.mark.parametrize("settings", [{}, {"yolo": True}, {"mode": "off"}, {"allow": ("git push *",)}], ids=str)
def test_the_deny_list_holds_in_every_mode_and_for_harmless_commands_too(settings: dict[str, Any]) -> None:
    strict = gate(deny=("git push", "ls -la"), **settings)
    approver = RecordingApprover([Decision.ALWAYS] * 3)
    for text in (REMOTE, HARMLESS):
        assert "your deny list has" in review(strict, text, approver=approver)
    assert review(strict, "ls") == "allowed"
    assert approver.requests == []


def test_the_deny_list_names_tools_too() -> None:
    strict = gate(deny=("tool:mcp__mail__*",))
    action = Action(ActionKind.TOOL, "send a mail")
    assert "your deny list" in review(strict, action, tool="mcp__mail__send")
    assert review(strict, action, tool="mcp__news__read") == "allowed"


@pytest.mark.parametrize("settings", [{"yolo": True}, {"mode": "off"}], ids=str)
def test_yolo_and_off_ask_nobody(settings: dict[str, Any]) -> None:
    assert review(gate(**settings), IN_HOME) == "allowed"


@pytest.mark.parametrize("text", ["rm -rf /\n(", "echo 'unclosed", "echo " + "(" * 10_000])
@pytest.mark.parametrize("settings", [{"yolo": True}, {"mode": "off"}], ids=str)
def test_what_cannot_be_read_is_asked_about_even_then(settings: dict[str, Any], text: str) -> None:
    """A shell runs the lines before the one that it cannot read."""
    assert review(gate(**settings), text).startswith("Not run:")


def test_what_the_user_allowed_is_not_asked_about() -> None:
    assert review(gate(allow=("git push",)), REMOTE) == "allowed"
    assert review(gate(allowlist=(DELETES_HERE,)), IN_PROJECT) == "allowed"


@pytest.mark.parametrize("text", [IN_HOME, UNKNOWN, REMOTE])
def test_what_is_allowed_in_the_project_is_not_allowed_elsewhere(text: str) -> None:
    assert review(gate(allowlist=(DELETES_HERE,)), text).startswith("Not run:")


def test_a_project_is_the_folder_and_what_is_below_it() -> None:
    allowed = gate(allowlist=(DELETES_HERE,))
    assert review(allowed, command(IN_PROJECT, cwd="/srv/app/web")) == "allowed"
    for elsewhere in ("/srv/application", "/srv", "/srv/other"):
        assert review(allowed, command(IN_PROJECT, cwd=elsewhere)).startswith("Not run:")


def test_what_is_allowed_here_is_not_allowed_on_another_machine() -> None:
    allowed = gate(allowlist=(DELETES_HERE,))
    assert review(allowed, command(IN_PROJECT, environment="ssh")).startswith("Not run:")


@pytest.mark.parametrize(
    "entry",
    [
        "*",
        "*@home",
        "fs.rm.recursive",
        "fs.rm.recursive@everywhere",
        "@home",
        "fs.rm.recursive@unknown",
        "x@home:/a",
    ],
)
def test_an_allowlist_entry_that_says_too_little_allows_nothing_at_all(entry: str) -> None:
    broken = gate(allowlist=(entry,))
    for text in (HARMLESS, IN_PROJECT):
        told = review(broken, text, approver=RecordingApprover([Decision.ONCE]))
        assert told.startswith("Not run: the approval settings cannot be read")
        assert entry in told


@pytest.mark.parametrize("entry", ["*", "**", "?*", "bash", "sudo", "/bin/sh", "xargs", "'", "tool:*"])
def test_an_allow_entry_that_would_match_everything_is_refused(entry: str) -> None:
    assert "cannot be read" in review(gate(allow=(entry,)), HARMLESS)


class TestNobodyThere:
    def test_it_is_denied_with_what_to_do_instead(self) -> None:
        error = error_in(shell([], gate()).handle("terminal", {"command": IN_PROJECT}))
        assert error["error_type"] == "denied"
        assert error["decided_by"] == "policy"
        assert "nobody is there to ask" in error["error"]
        assert "Do not try to reach the same by another command, tool or file" in error["error"]
        assert "Tell the user" in error["error"]

    def test_nothing_is_left_waiting(self) -> None:
        here = gate()
        review(here, IN_PROJECT)
        assert here.store.pending() == []


class TestIsolated:
    """What a command can reach decides."""

    @pytest.mark.parametrize("text", [IN_PROJECT, IN_HOME, UNKNOWN])
    def test_what_stays_in_a_container_is_not_asked_about(self, text: str) -> None:
        action = command(text, environment="docker", isolated=True, reaches_host=False)
        assert review(gate(), action) == "allowed"

    @pytest.mark.parametrize("text", [IN_PROJECT, IN_HOME, UNKNOWN])
    def test_a_mount_of_the_host_is_asked_about(self, text: str) -> None:
        action = command(text, environment="docker", isolated=True, reaches_host=True)
        assert review(gate(), action).startswith("Not run:")

    def test_what_acts_elsewhere_is_asked_about_wherever_it_runs(self) -> None:
        action = command(REMOTE, environment="docker", isolated=True, reaches_host=False)
        assert review(gate(), action).startswith("Not run:")

    def test_the_floor_holds_in_a_container_too(self) -> None:
        action = command(FORBIDDEN, environment="docker", isolated=True, reaches_host=False)
        assert "no setting allows it" in review(gate(), action)


class TestTools:
    def test_a_tool_that_says_that_it_destroys_is_asked_about(self) -> None:
        action = Action(ActionKind.TOOL, "delete mailbox", details={"destructive": True})
        approver = RecordingApprover([Decision.SESSION])
        here = gate()
        assert review(here, action, approver=approver, tool="mcp__mail__purge", session_id="s") == "allowed"
        assert review(here, action, approver=approver, tool="mcp__mail__purge", session_id="s") == "allowed"
        assert len(approver.requests) == 1
        assert review(here, action, approver=approver, tool="mcp__mail__other", session_id="s").startswith("Not run:")

    def test_the_user_can_name_tools_that_always_ask(self) -> None:
        listed = gate(ask_tools=("mcp__mail__*",))
        action = Action(ActionKind.TOOL, "send")
        assert review(listed, action, tool="mcp__mail__send").startswith("Not run:")
        assert review(listed, action, tool="mcp__news__read") == "allowed"


def test_several_actions_of_one_call_are_one_question() -> None:
    approver = RecordingApprover([Decision.ONCE])
    assert review(gate(), "rm -rf build", HARMLESS, "rm -rf dist", approver=approver) == "allowed"
    (request,) = approver.requests
    assert request.text == "rm -rf build\nrm -rf dist"
    marked = [request.text[concern.start : concern.end] for concern in request.concerns]
    assert [text.split()[-1] for text in marked] == ["build", "dist"]


def test_one_forbidden_action_forbids_the_call() -> None:
    approver = RecordingApprover([Decision.ONCE])
    assert review(gate(), "rm -rf build", FORBIDDEN, approver=approver).startswith("Not run:")
    assert approver.requests == []


class TestOwnRules:
    RULES = (
        "approval_rules:\n  deploy.production:\n    why: it goes to the customers\n    uses: ['make deploy']\n"
        "    match: [make deploy]\n    not_match: [make build]\n"
    )

    def test_a_rule_of_the_user_asks_and_its_answer_can_last(self, home: Path) -> None:
        (home / "config.yaml").write_text(self.RULES)
        here, approver = gate(path=home / "config.yaml"), RecordingApprover([Decision.SESSION])
        assert review(here, "make build") == "allowed"
        assert "it goes to the customers" in review(here, "make deploy")
        assert review(here, "make deploy", approver=approver, session_id="s") == "allowed"
        assert review(here, "sudo -u me make deploy", session_id="s") == "allowed"

    def test_it_asks_in_a_container_too_for_who_knows_where_it_reaches(self, home: Path) -> None:
        (home / "config.yaml").write_text(self.RULES)
        action = command("make deploy", environment="docker", isolated=True, reaches_host=False)
        assert review(gate(path=home / "config.yaml"), action).startswith("Not run:")

    def test_one_that_cannot_be_used_lets_nothing_pass(self, home: Path) -> None:
        (home / "config.yaml").write_text(self.RULES.replace("not_match: [make build]", "not_match: [make deploy]"))
        said = review(gate(path=home / "config.yaml"), HARMLESS)
        assert "config.yaml:2: approval_rules.deploy.production: " in said
        assert "must not be" in said


class TestBrokenConfiguration:
    def test_a_file_that_breaks_while_running_allows_nothing_until_it_is_mended(self, home: Path) -> None:
        path = home / "config.yaml"
        here = gate(path=path)
        assert review(here, HARMLESS) == "allowed"
        path.write_text("approvals: {mode: sometimes}\n")
        assert "must be one of manual, smart, off" in review(here, HARMLESS)
        path.write_text("approvals: {deny: [lp]}\n")
        assert review(here, HARMLESS) == "allowed"
        assert "deny list" in review(here, "lp x")

    def test_a_store_that_cannot_be_used_denies_what_would_be_asked(self, tmp_path: Path) -> None:
        (tmp_path / "approvals.db").write_bytes(b"this is no database" * 100)
        here = gate(tmp_path)
        approver = RecordingApprover([Decision.ONCE])
        assert "cannot be used" in review(here, IN_PROJECT, approver=approver)
        assert review(here, HARMLESS) == "allowed"
        here.close()


@pytest.mark.parametrize(
    ("entry", "allowed", "asked"),
    [
        ("recursive delete", IN_PROJECT, IN_HOME),
        ("git force push", REMOTE, IN_PROJECT),
        ("rm -rf build", IN_PROJECT, "rm -rf other"),
        ("git push --force *", REMOTE, IN_PROJECT),
    ],
)
def test_an_entry_in_the_form_of_hermes_agent_is_understood(entry: str, allowed: str, asked: str) -> None:
    kept = gate(allowlist=(entry,))
    assert review(kept, HARMLESS) == "allowed"
    assert review(kept, allowed) == "allowed"
    assert review(kept, asked).startswith("Not run:")
    assert review(kept, FORBIDDEN).startswith("Not run:")


@pytest.mark.parametrize("entry", ["bash", "docker*", "shell command via -c/-lc flag | sh", "a 'quote", "sudo *"])
def test_an_entry_of_hermes_agent_that_means_nothing_here_is_reported_with_its_line(
    entry: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(f"command_allowlist:\n  - fs.rm.recursive@project\n  - {json.dumps(entry)}\n")
    kept = gate(path=path)
    assert review(kept, HARMLESS) == "allowed"
    assert review(kept, IN_PROJECT) == "allowed"
    assert review(kept, "sudo bash -c 'rm -rf /srv/x'").startswith("Not run:")
    if entry != "sudo *":
        assert f"{path}:3" in caplog.text
        assert "it allows nothing" in caplog.text

"""The modes of a session: plan changes nothing, ask asks about every change, auto leaves it to the gate, yolo never asks."""

from __future__ import annotations

import json

import pytest

from handrail import Handrail
from handrail.approval.policy import Mode, read_mode, reads
from handrail.core.registry import ToolRegistry
from handrail.errors import InvalidArguments
from handrail.protocols import Action, ActionKind, Decision
from handrail.testing import RecordingApprover

from .gate_support import CWD, FORBIDDEN, HARMLESS, IN_PROJECT, command, gate, review

READING = (
    "ls -la | head -3",
    "git status && git diff | wc -l",
    "grep -rn todo src 2>/dev/null",
    "find . -name '*.py' 2>&1",
    "cat a.txt; head -5 b.txt",
    "sort a | uniq -c",
    "date +%F",
    "git branch --show-current && git config --get user.name",
)
CHANGING = (
    "touch a",
    "echo hi > a.txt",
    "ls >> list",
    "find . -name x -exec touch {} +",
    "find . -delete",
    "sort -o a a",
    "sort --output=a a",
    "git commit -m x",
    "git diff --output=x",
    "python3 build.py",
    "cat a | tee b",
    "cat $(touch x)",
    "rg --pre=./x y",
    "make",
    "uniq a b",
    "hostname other",
    "date 010100002030",
    "git stash list --output=x",
    "git shortlog --output=x",
    "git remote -v add x y",
)


def _write(path: str) -> Action:
    return Action(ActionKind.FILE_WRITE, path, CWD)


@pytest.mark.parametrize("text", READING)
@pytest.mark.parametrize("mode", [Mode.PLAN, Mode.ASK])
def test_reading_passes_in_every_mode(text: str, mode: Mode) -> None:
    checked = gate()
    checked.modes.default = mode
    assert review(checked, text) == "allowed"


@pytest.mark.parametrize("text", CHANGING)
def test_a_command_that_may_change_something_is_refused_in_plan_and_asks_in_ask(text: str) -> None:
    checked, approver = gate(), RecordingApprover([Decision.ONCE] * 3)
    checked.modes.default = Mode.PLAN
    assert "only plans" in review(checked, text, approver=approver)
    assert approver.requests == []
    checked.modes.default = Mode.ASK
    assert review(checked, text, approver=approver) == "allowed"
    assert len(approver.requests) == 1


def test_edits_ask_once_per_project_in_the_mode_ask() -> None:
    checked, approver = gate(), RecordingApprover([Decision.SESSION] * 3)
    checked.modes.default = Mode.ASK
    assert review(checked, _write(f"{CWD}/a.py"), approver=approver, tool="write_file", session_id="s") == "allowed"
    assert review(checked, _write(f"{CWD}/b.py"), approver=approver, tool="patch", session_id="s") == "allowed"
    assert len(approver.requests) == 1
    assert review(checked, _write("/srv/other/c.py"), approver=approver, tool="patch", session_id="s") == "allowed"
    assert len(approver.requests) == 2
    assert "only plans" not in review(checked, _write(f"{CWD}/d.py"), tool="patch", session_id="s")


def test_a_yes_for_one_program_says_nothing_about_another() -> None:
    checked, approver = gate(), RecordingApprover([Decision.SESSION] * 3)
    checked.modes.default = Mode.ASK
    for text in ("make", "make test", "cargo build"):
        review(checked, text, approver=approver, session_id="s")
    assert [request.text for request in approver.requests] == ["make", "cargo build"]


def test_yolo_does_not_ask_but_the_floor_holds() -> None:
    checked, approver = gate(), RecordingApprover([Decision.DENY] * 3)
    checked.modes.set("s", Mode.YOLO)
    assert review(checked, IN_PROJECT, approver=approver, session_id="s") == "allowed"
    assert "Not run" in review(checked, FORBIDDEN, approver=approver, session_id="s")
    assert "denied" in review(checked, IN_PROJECT, approver=approver, session_id="another")


def test_nothing_is_loosened_where_nobody_watches() -> None:
    checked = gate()
    checked.settings.leave_unattended()
    checked.modes.default = Mode.YOLO
    assert "needs approval" in review(checked, IN_PROJECT)


def test_a_mode_holds_for_its_session_and_its_children() -> None:
    checked = gate()
    checked.modes.set("parent", Mode.PLAN)
    checked.modes.inherit("child", "parent")
    checked.modes.inherit("other", "nobody")
    assert "only plans" in review(checked, "touch a", session_id="child")
    assert review(checked, "touch a", session_id="other") == "allowed"
    checked.modes.forget("child")
    assert review(checked, "touch a", session_id="child") == "allowed"


@pytest.mark.parametrize("mode", [Mode.PLAN, Mode.ASK])
def test_a_tool_that_names_no_actions_is_held_too(mode: Mode) -> None:
    registry = ToolRegistry()
    registry.register("deploy", "x", {"description": "d", "parameters": {}}, lambda args: "{}")
    registry.register("look", "x", {"description": "d", "parameters": {}}, lambda args: "{}", read_only=True)
    with Handrail(registry=registry) as app:
        assert app.handle_function_call("deploy", {}, session_id="s") == "{}"
        app.gate.modes.set("s", mode)
        assert json.loads(app.handle_function_call("deploy", {}, session_id="s"))["error_type"] == "denied"
        assert app.handle_function_call("look", {}, session_id="s") == "{}"
        assert app.handle_function_call("deploy", {}, session_id="another") == "{}"


def test_harmless_stays_harmless_in_auto() -> None:
    assert review(gate(), HARMLESS, command("touch a")) == "allowed"


def test_modes_are_read_by_name_and_follow_each_other() -> None:
    assert read_mode(" Plan ") is Mode.PLAN
    assert [Mode.PLAN.next, Mode.YOLO.next] == [Mode.ASK, Mode.PLAN]
    with pytest.raises(InvalidArguments, match="plan, ask, auto or yolo"):
        read_mode("fast")
    assert reads(("git", "status"))
    assert not reads(("git", "push"))

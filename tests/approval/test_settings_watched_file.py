"""A running gate takes over a stricter file at once, and a weaker one only when somebody says yes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.approval.gate import ApprovalGate
from handrail.approval.settings import Settings
from handrail.config.store import Confirmed
from handrail.protocols import Decision
from handrail.testing import RecordingApprover

from .gate_support import HARMLESS, IN_HOME, review

STRICT, WEAK = "approvals:\n  deny: [lp]\n", "approvals:\n  mode: 'off'\n"


@pytest.fixture
def file(home: Path) -> Path:
    path = home / "config.yaml"
    path.write_text(STRICT)
    return path


@pytest.fixture
def gate(file: Path, home: Path) -> ApprovalGate:
    return ApprovalGate(Settings(path=file, confirmed=Confirmed(home / "state")))


def test_stricter_holds_at_once_and_weaker_waits(gate: ApprovalGate, file: Path) -> None:
    assert "deny list" in review(gate, "lp x")
    file.write_text("approvals:\n  deny: [lp, ls]\n")
    assert "deny list" in review(gate, "ls")
    file.write_text(WEAK)
    assert "deny list" in review(gate, "lp x")
    assert "deny list" in review(gate, "ls")
    assert review(gate, IN_HOME).startswith("Not run:")
    file.unlink()
    assert "deny list" in review(gate, "ls")


def test_a_yes_to_the_question_applies_it(gate: ApprovalGate, file: Path, home: Path) -> None:
    assert review(gate, HARMLESS) == "allowed"
    file.write_text(WEAK)
    approver = RecordingApprover([Decision.ONCE])
    assert review(gate, HARMLESS, approver=approver) == "allowed"
    assert approver.requests == []  # nothing depends on it yet
    assert review(gate, IN_HOME, approver=approver) == "allowed"
    (asked,) = approver.requests
    assert "approvals.mode: manual -> off" in asked.text
    assert set(asked.offers) == {Decision.ONCE, Decision.DENY}
    kept = json.loads((home / "state" / "confirmed.json").read_text())
    assert kept[str(file)]["settings"] == {"approvals": {"mode": "off"}}


def test_a_no_is_not_asked_again_until_the_file_changes(gate: ApprovalGate, file: Path) -> None:
    review(gate, HARMLESS)
    file.write_text(WEAK)
    approver = RecordingApprover([Decision.DENY])
    for _ in range(2):
        assert review(gate, "lp x", approver=approver).startswith("Not run:")
    assert [request.tool for request in approver.requests] == ["configuration"]
    file.write_text("approvals:\n  allow: [lp]\n")
    assert review(gate, "lp x", approver=approver).startswith("Not run:")
    assert len(approver.requests) == 2


def test_a_confirmation_from_elsewhere_counts_while_it_runs(gate: ApprovalGate, file: Path, home: Path) -> None:
    assert "deny list" in review(gate, "lp x")
    file.write_text("{}\n")
    assert "deny list" in review(gate, "lp x")
    from handrail.config.store import read_config

    Confirmed(home / "state").confirm(file, read_config(file))
    assert review(gate, "lp x") == "allowed"


def test_always_holds_though_something_else_waits(gate: ApprovalGate, file: Path) -> None:
    review(gate, HARMLESS)
    file.write_text("approvals:\n  task_uses: 999\n")
    approver = RecordingApprover([Decision.DENY, Decision.ALWAYS])
    assert review(gate, IN_HOME, approver=approver) == "allowed"
    assert review(gate, IN_HOME) == "allowed"
    assert "deny list" in review(gate, "lp x")


def test_a_projects_policy_does_not_become_weaker_either(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = tmp_path / ".handrail" / "config.yaml"
    policy.parent.mkdir()
    policy.write_text(STRICT)
    monkeypatch.chdir(tmp_path)
    with Handrail(home=home) as app:
        assert "deny list" in review(app.gate, "lp x")
        policy.write_text("{}\n")
        assert "deny list" in review(app.gate, "lp x")
    policy.unlink()
    policy.parent.rmdir()
    with Handrail(home=home) as app:  # nor for a service that is started later
        assert "deny list" in review(app.gate, "lp x")
    with Handrail(home=home, confirms=True) as app:
        assert review(app.gate, "lp x") == "allowed"

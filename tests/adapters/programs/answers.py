"""What the programs of these tests share: the session that they open, and how they answer what they are asked."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import handrail
from handrail import Config
from handrail.approval import ApprovalRequest, Decision
from handrail.settings.sections import ApprovalsConfig

PLAN: dict[str, Any] = json.loads(os.environ["PLAN"])
asked: list[Any] = []
_STORED = Path("../state.json")


def opened() -> Any:
    own: dict[str, Any] = {"approver": _approver} if PLAN.get("approver") else {}
    if asks := PLAN.get("ask_tools"):
        own["config"] = Config(approvals=ApprovalsConfig(ask_tools=tuple(asks)))
    return handrail.session(cwd=Path.cwd(), toolsets=["terminal", "file"], id=PLAN.get("id"), **own)


def answer(question: Any) -> bool:
    """Whether the plan says yes. What the plan changes is changed between the question and the answer."""
    asked.append({"question": question, "victim": Path("victim").exists()})
    for name, text in PLAN.get("change", {}).items():
        Path(name).write_text(text)
    return bool(PLAN.get("yes"))


def report(output: object, errors: list[str]) -> None:
    print(json.dumps({"output": str(output), "errors": errors, "asked": asked}))


def store(state: object) -> None:
    _STORED.write_text(json.dumps(state))


def stored() -> Any:
    """What the program stored when it was run before."""
    return json.loads(_STORED.read_text()) if _STORED.exists() else None


def _approver(request: ApprovalRequest) -> Decision:
    return Decision.ONCE if answer(f"approver: {request.text}") else Decision.DENY

"""Approval: decide whether an action may happen, and ask the user well where that is not clear.

`gate` is the way in: `ApprovalGate.review` takes actions and raises `Denied`. Behind it, in the order of a review:
`settings` (what the user configured, `project_policy` tightens it), `action_review` (find what is dangerous, with
`handrail.judge`, `typed_input`, `self_protection` and `dangerous_patterns`), `policy` with `allowlist` and `grants` (decide
without asking), `requests` and `inbox` (ask, wait for the first answer), `approvers` (who is asked, and how), `display`,
`lookalikes`, `secrets` (what is shown), `refusals` (what the model gets), `records` (what is kept) and `simulation` (judge
the history again under another policy).
"""

# ruff: noqa: F401  type checkers read the imports; at run time `__getattr__` loads a name when it is first used

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..errors import Denied
    from ..judge.assess import assess
    from ..judge.values.assessment import Assessment, Finding, Reach, Severity, Verdict
    from ..protocols import Action, ActionKind, Answer, ApprovalRequest, Approver, Concern, Decision
    from ..store.approvals import ApprovalStore
    from .approvers import (
        CallbackApprover,
        ChainApprover,
        PolicyApprover,
        QueueApprover,
        SmartApprover,
        TerminalApprover,
    )
    from .dangerous_patterns import DANGEROUS_PATTERNS, detect_dangerous_command
    from .gate import ApprovalGate
    from .settings import Settings

_HOMES = {
    "ApprovalGate": ".gate",
    "Settings": ".settings",
    "CallbackApprover": ".approvers",
    "ChainApprover": ".approvers",
    "PolicyApprover": ".approvers",
    "QueueApprover": ".approvers",
    "SmartApprover": ".approvers",
    "TerminalApprover": ".approvers",
    "DANGEROUS_PATTERNS": ".dangerous_patterns",
    "detect_dangerous_command": ".dangerous_patterns",
    "assess": "handrail.judge.assess",
    "Assessment": "handrail.judge.values.assessment",
    "Finding": "handrail.judge.values.assessment",
    "Reach": "handrail.judge.values.assessment",
    "Severity": "handrail.judge.values.assessment",
    "Verdict": "handrail.judge.values.assessment",
    "Action": "handrail.protocols",
    "ActionKind": "handrail.protocols",
    "Answer": "handrail.protocols",
    "ApprovalRequest": "handrail.protocols",
    "Approver": "handrail.protocols",
    "Concern": "handrail.protocols",
    "Decision": "handrail.protocols",
    "ApprovalStore": "handrail.store.approvals",
    "Denied": "handrail.errors",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)


def __dir__() -> list[str]:
    return __all__

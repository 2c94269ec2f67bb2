"""Approval: decide whether an action may happen, and ask the user well where that is not clear.

`gate` is the way in: `ApprovalGate.review` takes actions and raises `Denied`. Behind it, in the order of a review:
`settings` (what the user configured, `project_policy` tightens it), `action_review` (find what is dangerous, with
`handrail.judge`, `typed_input`, `self_protection` and `dangerous_patterns`), `policy` with `allowlist` and `grants` (decide
without asking), `requests` and `inbox` (ask, wait for the first answer), `approvers` (who is asked, and how), `display`,
`preview`, `secrets` (what is shown; `preview` binds the yes to it), `questions` (what is asked, and
what the model gets for a no), `records` (what is kept) and `simulation` (judge the history again under another policy).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.lazy_module import lazy_module

if TYPE_CHECKING:
    from ..errors import Denied
    from ..judge import assess
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
    "ApprovalGate": "handrail.approval.gate",
    "Settings": "handrail.approval.settings",
    "CallbackApprover": "handrail.approval.approvers",
    "ChainApprover": "handrail.approval.approvers",
    "PolicyApprover": "handrail.approval.approvers",
    "QueueApprover": "handrail.approval.approvers",
    "SmartApprover": "handrail.approval.approvers",
    "TerminalApprover": "handrail.approval.approvers",
    "DANGEROUS_PATTERNS": "handrail.approval.dangerous_patterns",
    "detect_dangerous_command": "handrail.approval.dangerous_patterns",
    "assess": "handrail.judge",
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

__all__ = [
    "DANGEROUS_PATTERNS",
    "Action",
    "ActionKind",
    "Answer",
    "ApprovalGate",
    "ApprovalRequest",
    "ApprovalStore",
    "Approver",
    "Assessment",
    "CallbackApprover",
    "ChainApprover",
    "Concern",
    "Decision",
    "Denied",
    "Finding",
    "PolicyApprover",
    "QueueApprover",
    "Reach",
    "Settings",
    "Severity",
    "SmartApprover",
    "TerminalApprover",
    "Verdict",
    "assess",
    "detect_dangerous_command",
]
__getattr__, __dir__ = lazy_module(__name__, _HOMES)

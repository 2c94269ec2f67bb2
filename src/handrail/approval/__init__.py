"""Approval: decide whether an action may happen, and ask the user well where that is not clear.

`gate` is the way in: `ApprovalGate.review` takes actions and raises `Denied`. Behind it, in the order of a review:
`settings` (what the user configured), `action_review` (find what is dangerous, with `handrail.judge` and `typed_input`),
`policy` with `allowlist` (decide without asking), `requests` (ask, wait for the first answer), `approvers` (who is
asked, and how), `display` (what is shown, without secrets), `questions` (what is asked, the preview that binds the yes, and what
the model gets for a no), `records` (what is kept, and judging it again under another policy) and `suggestions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.lazy_module import lazy_module

if TYPE_CHECKING:
    from ..errors import Denied as Denied
    from ..judge import assess as assess
    from ..judge.values.assessment import Assessment as Assessment
    from ..judge.values.assessment import Finding as Finding
    from ..judge.values.assessment import Reach as Reach
    from ..judge.values.assessment import Severity as Severity
    from ..judge.values.assessment import Verdict as Verdict
    from ..protocols import Action as Action
    from ..protocols import ActionKind as ActionKind
    from ..protocols import Answer as Answer
    from ..protocols import ApprovalRequest as ApprovalRequest
    from ..protocols import Approver as Approver
    from ..protocols import Concern as Concern
    from ..protocols import Decision as Decision
    from ..store.approvals import ApprovalStore as ApprovalStore
    from .action_review import DANGEROUS_PATTERNS as DANGEROUS_PATTERNS
    from .action_review import detect_dangerous_command as detect_dangerous_command
    from .approvers.smart import SmartApprover as SmartApprover
    from .approvers.terminal import TerminalApprover as TerminalApprover
    from .gate import ApprovalGate as ApprovalGate
    from .requests import CallbackApprover as CallbackApprover
    from .requests import ChainApprover as ChainApprover
    from .requests import PolicyApprover as PolicyApprover
    from .requests import QueueApprover as QueueApprover
    from .settings import Settings as Settings
else:
    __getattr__, __dir__, __all__ = lazy_module(
        __name__,
        {
            "handrail.errors": "Denied",
            "handrail.judge": "assess",
            "handrail.judge.values.assessment": "Assessment Finding Reach Severity Verdict",
            "handrail.protocols": "Action ActionKind Answer ApprovalRequest Approver Concern Decision",
            "handrail.store.approvals": "ApprovalStore",
            ".action_review": "DANGEROUS_PATTERNS detect_dangerous_command",
            ".approvers.smart": "SmartApprover",
            ".approvers.terminal": "TerminalApprover",
            ".gate": "ApprovalGate",
            ".requests": "CallbackApprover ChainApprover PolicyApprover QueueApprover",
            ".settings": "Settings",
        },
    )

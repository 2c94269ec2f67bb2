"""Who may approve. Names are loaded when they are first used.

`basic`: `PolicyApprover` (denies), `QueueApprover` (waits for the store), `CallbackApprover` (sends the request somewhere) and
`ChainApprover` (tries several). `terminal`: `TerminalApprover`, with its text in `prompt`. `smart`: `SmartApprover`, which asks
a model, with the question in `model_question`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...base.lazy_module import lazy_module

if TYPE_CHECKING:
    from .basic import CallbackApprover, ChainApprover, PolicyApprover, QueueApprover
    from .smart import SmartApprover
    from .terminal import TerminalApprover

_HOMES = {
    "CallbackApprover": "handrail.approval.approvers.basic",
    "ChainApprover": "handrail.approval.approvers.basic",
    "PolicyApprover": "handrail.approval.approvers.basic",
    "QueueApprover": "handrail.approval.approvers.basic",
    "SmartApprover": "handrail.approval.approvers.smart",
    "TerminalApprover": "handrail.approval.approvers.terminal",
}

__all__ = ["CallbackApprover", "ChainApprover", "PolicyApprover", "QueueApprover", "SmartApprover", "TerminalApprover"]
__getattr__, __dir__ = lazy_module(__name__, _HOMES)

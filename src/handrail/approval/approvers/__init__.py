"""Who may approve. Names are loaded when they are first used.

`basic`: `PolicyApprover` (denies), `QueueApprover` (waits for the store), `CallbackApprover` (sends the request somewhere) and
`ChainApprover` (tries several). `terminal`: `TerminalApprover`, with its text in `prompt`. `smart`: `SmartApprover`, which asks
a model, with the question in `model_question`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...base.lazy_module import lazy_module

if TYPE_CHECKING:
    from .basic import CallbackApprover as CallbackApprover
    from .basic import ChainApprover as ChainApprover
    from .basic import PolicyApprover as PolicyApprover
    from .basic import QueueApprover as QueueApprover
    from .smart import SmartApprover as SmartApprover
    from .terminal import TerminalApprover as TerminalApprover
else:
    __getattr__, __dir__, __all__ = lazy_module(
        __name__,
        {
            ".basic": "CallbackApprover ChainApprover PolicyApprover QueueApprover",
            ".smart": "SmartApprover",
            ".terminal": "TerminalApprover",
        },
    )

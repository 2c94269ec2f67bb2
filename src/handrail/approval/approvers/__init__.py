"""Who may approve. Names are loaded when they are first used.

`basic`: `PolicyApprover` (denies), `QueueApprover` (waits for the store), `CallbackApprover` (sends the request somewhere) and
`ChainApprover` (tries several). `terminal`: `TerminalApprover`, with its text in `prompt`. `smart`: `SmartApprover`, which asks
a model, with the question in `model_question`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .basic import CallbackApprover, ChainApprover, PolicyApprover, QueueApprover
    from .smart import SmartApprover
    from .terminal import TerminalApprover

_HOMES = {"SmartApprover": ".smart", "TerminalApprover": ".terminal"}

__all__ = [
    "CallbackApprover",
    "ChainApprover",
    "PolicyApprover",
    "QueueApprover",
    "SmartApprover",
    "TerminalApprover",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, ".basic"), __name__), name)


def __dir__() -> list[str]:
    return __all__

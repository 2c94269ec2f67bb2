"""Who may say yes: one file each. A name is loaded when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .callback import CallbackApprover
    from .chain import ChainApprover
    from .policy import PolicyApprover
    from .queue import QueueApprover
    from .smart import SmartApprover
    from .terminal import TerminalApprover

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
    from importlib import import_module

    return getattr(import_module(f".{name.removesuffix('Approver').lower()}", __name__), name)

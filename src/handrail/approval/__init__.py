"""Decide whether a command may run: judge it as the shell will run it, and ask a person well.

`detect` is the judge (`assess`, `detect_dangerous_command`, which can be imported from here too); `shell/` reads and
follows a command without running it, `rules/` says what is dangerous, `embedded/` judges other languages inside a command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..judge import DANGEROUS_PATTERNS, assess, detect_dangerous_command

__all__ = ["DANGEROUS_PATTERNS", "assess", "detect_dangerous_command"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .. import judge  # late: the judge is needed only when there is a command to judge

    return getattr(judge, name)

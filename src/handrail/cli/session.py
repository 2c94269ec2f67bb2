"""The runtime as the command line uses it: with the person at the terminal, and log lines on stderr."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..model_tools import Handrail
    from ..types import Progress


def open_runtime() -> Handrail:
    """Raises ConfigError when the configuration cannot be used."""
    import logging

    from ..model_tools import default
    from .person import TerminalPerson

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="handrail: %(message)s")
    here = default()
    # Someone is there who sees the question and can answer it.
    here.runtime.person = TerminalPerson() if sys.stdin.isatty() and sys.stderr.isatty() else None
    return here


def close_runtime() -> None:
    """End what the command's calls have started, if there were any."""
    model_tools = sys.modules.get("handrail.model_tools")
    if model_tools is not None:
        model_tools.reset()


def show_progress(progress: Progress) -> None:
    """One line of news from a running call, on stderr."""
    from .output import note

    share = f" {progress.fraction:4.0%}" if progress.fraction is not None else ""
    note(f"{progress.tool}:{share} {progress.message}")

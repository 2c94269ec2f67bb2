"""The runtime as the command line uses it: with the person at the terminal, and log lines on stderr."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

from .output import notes_held

if TYPE_CHECKING:
    from ..app import Handrail
    from ..approval.approvers.terminal import Hold
    from ..types import Progress

_PR_SET_DUMPABLE = 4


def open_runtime(*, yolo: bool = False, asks: bool = True, hold: Hold = notes_held) -> Handrail:
    """`yolo` asks nobody, and allows; without `asks` nobody is asked either, and what would need it is denied.

    `hold` keeps other lines away from a question. Raises ConfigError when the configuration cannot be used.
    """
    from ..model_tools import default
    from .terminal_person import TerminalPerson

    log_as_notes()
    hide_from_others()
    with contextlib.redirect_stdout(sys.stderr):  # what a plugin prints while it is loaded is not the command's result
        here = default()
    if not asks:
        here.runtime.person = None
    elif sys.stdin.isatty() and sys.stderr.isatty():  # someone is there who sees the question and can answer it
        here.runtime.person = TerminalPerson(hold)
    if yolo:
        here.gate.settings.lift_asking()
    elif asks:
        _ask_at_terminal(here, hold)
    return here


def hide_from_others() -> None:
    """Other processes of this user, such as what an agent runs, cannot read this one's memory or environment. Root's can."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def close_runtime() -> None:
    """End what the command's calls have started, if there were any."""
    model_tools = sys.modules.get("handrail.model_tools")
    if model_tools is not None:
        model_tools.reset()


def _ask_at_terminal(here: Handrail, hold: Hold) -> None:
    from ..approval.approvers import ChainApprover, TerminalApprover
    from ..approval.approvers.terminal import is_there

    if not is_there():
        return
    at_terminal, otherwise = TerminalApprover(hold=hold), here.runtime.approver
    here.runtime.approver = at_terminal if otherwise is None else ChainApprover(at_terminal, otherwise)


def log_as_notes() -> None:
    import logging

    class Notes(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            note(f"handrail: {record.getMessage()}")

    from .output import note

    # What goes wrong with a server is told once, by us.
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    if not logging.root.handlers:
        logging.root.addHandler(Notes(logging.WARNING))


def show_progress(progress: Progress) -> None:
    """One line of news from a running call, on stderr."""
    from .output import note

    share = f" {progress.fraction:4.0%}" if progress.fraction is not None else ""
    note(f"{progress.tool}:{share} {progress.message}")

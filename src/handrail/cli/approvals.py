"""Approval requests at the command line: shown, and answered."""

import shutil
import sys
import time

from ..approval.approvers.prompt import ANSWERS, PREVIEW_LINES, question
from ..approval.approvers.terminal import TerminalApprover
from ..approval.gate import STORE_NAME
from ..base.workers import run_async
from ..config.paths import state_dir
from ..errors import Denied, InvalidArguments
from ..protocols import Answer, Decision
from ..store.approvals import ApprovalStore, State, StoredRequest
from .output import as_typed, colours, emit


def open_approvals() -> ApprovalStore:
    return ApprovalStore(state_dir() / STORE_NAME)


def show_request(stored: StoredRequest, *, in_full: bool = False) -> None:
    """`in_full` with all that would be written."""
    lines, how = None if in_full else PREVIEW_LINES, as_typed(f"`handrail approvals show {stored.request.id}`")
    width = min(shutil.get_terminal_size().columns, 120)
    text = question(stored.request, width=width, painted=colours(sys.stdout), max_lines=lines, how=how)
    emit(text, end="")
    if not stored.is_waiting:
        emit("  The process that asked has exited; an answer holds if the same is asked again.")


def chosen(stored: StoredRequest, given: str) -> Answer | None:
    """The answer that was given, or that you give now at the terminal; None if you give none. Approving needs a terminal."""
    request = stored.request
    if given:
        decision = ANSWERS.get(given.strip().lower())
        if decision is None or decision not in request.offers:
            offered = ", ".join(each.value for each in request.offers)
            raise InvalidArguments(f"{given!r} is not an answer to {request.id}; it takes {offered}")
        if decision.allows and not sys.stdin.isatty():
            raise Denied("approving needs a terminal, and stdin is not one; answer where you can see the question")
        return Answer(decision, TerminalApprover.name)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidArguments("give the answer: once, try, task, session, always or deny")
    if stored.state is not State.PENDING:
        return Answer(Decision.DENY, TerminalApprover.name)  # the store then reports that it is too late
    return run_async(TerminalApprover().decide(request._replace(id="")))


def come_too_late(before: StoredRequest) -> str:
    """What had happened to a request before this answer came."""
    ago = f" {max(0, round(time.time() - before.answered))} s ago" if before.answered else ""
    if before.answer is not None:
        return f"too late: {before.request.id} was answered{ago} by {before.answer.by}: {before.answer.decision.value}"
    states = {"expired": "it timed out and was denied", "withdrawn": "the call was cancelled"}
    return f"too late: {before.request.id}: {states.get(before.state.value, before.state.value)}{ago}"

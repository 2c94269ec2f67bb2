"""Who may answer at the command line, and with what."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TYPE_CHECKING

from ..base.agent_ancestry import started_by_agent
from ..errors import Denied, InvalidArguments
from ..protocols import Decision

if TYPE_CHECKING:
    from ..store.approvals import StoredRequest


def refuse_inside(what: str) -> None:
    """Raise Denied in a process that an agent's tool started."""
    if started_by_agent():
        raise Denied(f"an agent cannot {what}: this shell was started by one; use a terminal of your own")


def chosen(stored: StoredRequest, given: str) -> Decision | None:
    """The decision that was given, or that the person makes now. None: they made none. A yes needs a person."""
    from ..approval.approvers.prompt import ANSWERS, question
    from ..store.approvals import State
    from .output import colours

    request = stored.request
    if given:
        decision = ANSWERS.get(given.strip().lower())
        if decision is None or decision not in request.offers:
            offered = ", ".join(each.value for each in request.offers)
            raise InvalidArguments(f"{given!r} is no answer to {request.id}; it takes {offered}")
        if decision.allows and not sys.stdin.isatty():
            raise Denied("a yes needs a person at a terminal, and stdin is none; answer where you can see the question")
        return decision
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidArguments("give the answer: once, task, session, always or deny")
    if stored.state is not State.PENDING:
        return Decision.DENY  # it is told below that this comes too late
    width = min(shutil.get_terminal_size().columns, 100)
    sys.stderr.write(question(request._replace(id=""), width=width, painted=colours(sys.stderr)))
    offered = ", ".join(each.value for each in request.offers)
    while True:
        sys.stderr.write(f"  {offered}? ")
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            sys.stderr.write("\n")
            return None
        decision = ANSWERS.get(line.strip().lower())
        if decision is not None and decision in request.offers:
            return decision
        sys.stderr.write("  Type one of these words, or its first letter; Enter alone is no answer.\n")


def come_too_late(before: StoredRequest) -> str:
    """What had happened to a request before this answer came."""
    ago = f" {max(0, round(time.time() - before.answered))} s ago" if before.answered else ""
    if before.answer is not None:
        return f"too late: {before.request.id} was answered{ago} by {before.answer.by}: {before.answer.decision.value}"
    said = {"expired": "its time was over; that is a no", "withdrawn": "the call was cancelled"}
    return f"too late: {before.request.id}: {said.get(before.state.value, before.state.value)}{ago}"

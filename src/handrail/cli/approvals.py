"""Approval requests, grants and decisions at the command line: shown, and answered."""

from __future__ import annotations

import shutil
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ..approval.approvers.prompt import ANSWERS, PREVIEW_LINES, question
from ..approval.approvers.terminal import TerminalApprover
from ..approval.display import visible
from ..approval.gate import STORE_NAME
from ..base.workers import run_async
from ..config import state_dir
from ..errors import Denied, InvalidArguments
from ..protocols import Answer, Decision
from ..store.approvals import ApprovalStore, State, StoredRequest
from .output import as_typed, colours, emit, emit_json, emit_table

if TYPE_CHECKING:
    from ..approval.records import Simulation
    from ..approval.suggestions import Suggestions
    from ..store.approvals import DecisionRecord, StoredGrant
    from ..types import JsonDict

_SHORT_TEXT = 200


def open_approvals() -> ApprovalStore:
    return ApprovalStore(state_dir() / STORE_NAME)


def request_view(stored: StoredRequest) -> JsonDict:
    request = stored.request
    return {
        "id": request.id,
        "tool": request.tool,
        "kind": request.kind.value,
        "text": request.text,
        "preview": request.preview,
        "cwd": request.cwd,
        "environment": request.environment,
        "session": request.session_id,
        "task": request.task_id,
        "concerns": [concern._asdict() for concern in request.concerns],
        "offers": [decision.value for decision in request.offers],
        "asked_at": _when(stored.created),
        "expires_at": _when(request.expires_at),
        "is_waiting": stored.is_waiting,
    }


def show_request(stored: StoredRequest, *, in_full: bool = False) -> None:
    """`in_full` with all that would be written."""
    lines, how = None if in_full else PREVIEW_LINES, as_typed(f"`handrail approvals show {stored.request.id}`")
    text = question(stored.request, width=_width(), painted=colours(sys.stdout), max_lines=lines, how=how)
    emit(text, end="")
    if not stored.is_waiting:
        emit("  The process that asked has exited; an answer holds if the same is asked again.")


def grant_view(grant: StoredGrant) -> JsonDict:
    return {
        "id": grant.id,
        "scope": grant.scope,
        "key": grant.key,
        "by": grant.by,
        "granted_at": _when(grant.created),
        "expires_at": None if grant.expires is None else _when(grant.expires),
        "uses_left": grant.uses_left,
    }


def grant_row(grant: StoredGrant) -> tuple[str, str, str, str]:
    kind, _, name = grant.scope.partition(":")
    where = "one process" if kind == "process" else f"{kind} {name}"
    bounds = []
    if grant.expires is not None:
        bounds.append(f"{max(0, round((grant.expires - time.time()) / 60))} more minutes")
    if grant.uses_left is not None:
        bounds.append(f"{grant.uses_left} more times")
    return str(grant.id), visible(where), ", ".join(bounds) or "until it ends", visible(grant.key)


def decision_view(record: DecisionRecord) -> JsonDict:
    return {**record._asdict(), "keys": list(record.keys), "at": _when(record.at)}


def decision_row(record: DecisionRecord) -> tuple[str, str, str, str, str, str]:
    took = f"{record.seconds:.1f} s" if record.seconds else ""
    when = datetime.fromtimestamp(record.at).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    keys = " ".join(record.keys)
    return when, record.decision, record.by, took, visible(keys), visible(record.text, max_chars=_SHORT_TEXT)


def show_simulation(simulation: Simulation, *, only_changed: bool, as_json: bool) -> None:
    shown = [trial for trial in simulation.trials if trial.is_changed or not only_changed]
    if as_json:
        emit_json({"counts": simulation.counts(), "trials": [trial._asdict() for trial in shown]})
        return
    rows = [
        (f"{trial.was} → {trial.would}", visible(" ".join(trial.rules)), visible(trial.text, max_chars=_SHORT_TEXT))
        for trial in shown
        if trial.is_changed
    ]
    if rows:
        emit_table(("WAS → WOULD BE", "RULES", "WHAT"), rows, wide=2)
        emit("")
    counts = simulation.counts()
    emit(f"{counts['actions']} actions: {counts['changed']} would be decided otherwise.")
    emit(f"allowed {counts['allow']}, asked {counts['ask']}, denied {counts['deny']}.")


def show_suggestions(found: Suggestions, *, as_json: bool) -> None:
    if as_json:
        rules = [{**rule._asdict(), "also_allows": [each.command for each in rule.also_allows]} for rule in found.rules]
        emit_json({**found._asdict(), "rules": rules})
        return
    for rule in found.rules:
        newest, of = rule.held_back
        emit(f"{rule.id}  {visible(rule.rule)}")
        emit(f"    in {rule.setting}; answers {rule.answered} of {found.questions} questions as you did")
        emit(
            f"    of the newest {of}, which were not looked at to find it, it answers {newest}, and none that you denied"
        )
        if rule.provoked:
            emit(f"    CAREFUL: an agent could have brought this about by asking: {rule.provoked}")
        emit(
            "\n      ".join(
                ["    the riskiest that it also allows:", *(visible(each.command) for each in rule.also_allows)]
            )
        )
    emit(f"{len(found.rules)} rules would have answered {found.answered} of your last {found.questions} questions.")


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


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


def _width() -> int:
    return min(shutil.get_terminal_size().columns, 120)


def come_too_late(before: StoredRequest) -> str:
    """What had happened to a request before this answer came."""
    ago = f" {max(0, round(time.time() - before.answered))} s ago" if before.answered else ""
    if before.answer is not None:
        return f"too late: {before.request.id} was answered{ago} by {before.answer.by}: {before.answer.decision.value}"
    states = {"expired": "it timed out and was denied", "withdrawn": "the call was cancelled"}
    return f"too late: {before.request.id}: {states.get(before.state.value, before.state.value)}{ago}"

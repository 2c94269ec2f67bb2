"""Stored values as JSON for clients. Commands are split into escape-safe pieces, with the dangerous ones marked."""

from __future__ import annotations

from ..approval.approvers.prompt import covered_by
from ..approval.display import pieces, visible
from ..approval.questions import has_excerpt, preview_of
from ..processes.tracked import TrackedProcess
from ..protocols import ApprovalRequest
from ..store.approvals import StoredGrant, StoredRequest
from ..store.sessions import SessionInfo
from ..types import JsonDict


def request_view(stored: StoredRequest) -> JsonDict:
    request, answer = stored.request, stored.answer
    return {
        "id": request.id,
        "state": stored.state.value,
        "tool": request.tool,
        "kind": request.kind.value,
        "asker": request.asker,
        "reason": request.reason,
        "pieces": shown(request),
        "preview": preview(request),
        "editable": request.text if request.editable else None,
        "cwd": request.cwd,
        "environment": request.environment,
        "session": request.session_id,
        "task": request.task_id,
        "concerns": [{"rule": each.rule, "why": each.why, "covers": each.covers} for each in request.concerns],
        "offers": [{"decision": each.value, "covers": covered_by(request, each)} for each in request.offers],
        "asked_at": stored.created,
        "expires_at": request.expires_at,
        "is_waiting": stored.is_waiting,
        "decision": (answer.decision.value if not answer.edited else "edit") if answer else None,
        "by": answer.by if answer else None,
        "why": (f"changed to: {visible(answer.edited)}" if answer.edited else answer.why) if answer else None,
        "answered_at": stored.answered,
    }


def shown(request: ApprovalRequest) -> list[JsonDict]:
    """The text of a request in pieces; pieces marked as ours describe characters that cannot be shown."""
    spans = [(each.start, each.end) for each in request.concerns]
    return [piece._asdict() for piece in pieces(request.text, spans)]


def preview(request: ApprovalRequest) -> JsonDict | None:
    """What would be written, line by line; `is_excerpt`: `pieces` shows parts of the same text. None where there is nothing more
    to see than `pieces`."""
    lines = preview_of(request)
    if not lines:
        return None
    shown = [{"kind": line.kind.value, "pieces": [piece._asdict() for piece in line.pieces]} for line in lines]
    return {"lines": shown, "is_excerpt": has_excerpt(request)}


def grant_view(grant: StoredGrant) -> JsonDict:
    return {
        "id": str(grant.id),
        "scope": grant.scope,
        "key": grant.key,
        "by": grant.by,
        "granted_at": grant.created,
        "expires_at": grant.expires,
        "uses_left": grant.uses_left,
    }


def process_view(tracked: TrackedProcess) -> JsonDict:
    record, status = tracked.record, tracked.status()
    return {
        "id": record.id,
        "command": tracked.mask(record.command),
        "task": record.task_id,
        "session": record.session_id,
        "environment": record.environment,
        "pid": record.pid,
        "has_pty": record.has_pty,
        "rows": record.rows,
        "columns": record.columns,
        "started_at": record.started_at,
        "state": status.state.value,
        "exit_code": status.exit_code,
        "ended_at": status.ended_at,
        "reason": status.reason,
    }


def session_view(info: SessionInfo) -> JsonDict:
    return dict(info._asdict())

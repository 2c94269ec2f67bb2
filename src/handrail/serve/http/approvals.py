"""Open approval questions and their answers: the first answer to each counts."""

from __future__ import annotations

import asyncio

from ...approval.settings import remove_from_allowlist
from ...config import config_path
from ...protocols import Answer, Decision
from ...types import JsonDict
from ..endpoint import Endpoint, HttpError, RequestContext
from ..tokens import Role
from ..views import grant_view, request_view
from .shapes import ANYTHING, FLAG, TEXT, bounded, count, loose, many, record


async def waiting(context: RequestContext) -> JsonDict:
    """Open questions, and what is allowed for longer than once."""
    return await asyncio.to_thread(_waiting, context)


def _waiting(context: RequestContext) -> JsonDict:
    store, settings = context.served.approvals, context.served.app.gate.settings
    settings.policy()  # reads the file again if it has changed
    return {
        "waiting": [request_view(stored) for stored in store.pending()],
        "grants": [grant_view(grant) for grant in store.grants.all()],
        "always": list(settings.config.command_allowlist),
    }


async def one(context: RequestContext) -> JsonDict:
    """One question and its outcome."""
    return request_view(await asyncio.to_thread(context.served.approvals.get, context.path["id"]))


async def answer(context: RequestContext) -> JsonDict:
    """Answer a question. The first answer counts: `holds` is false for a late one, and the question shows the outcome. `edit` has
    `text` run instead of what was asked about; it is judged like any other, and may be asked about again."""
    store, body = context.served.approvals, context.body
    stored = await asyncio.to_thread(store.get, context.path["id"])
    word = body["decision"]
    offered = [each.value for each in stored.request.offers] + [_EDIT] * bool(stored.request.editable)
    if word not in offered:
        raise HttpError(422, "not_offered", f"this question offers {', '.join(offered)}, not {word}")
    text = body.get("text", "") if word == _EDIT else ""
    if word == _EDIT and not text.strip():
        raise HttpError(422, "invalid_body", "edit needs `text`: what is to run instead")
    decision = Decision.DENY if text else Decision(word)
    given = Answer(decision, f"web:{context.who.name}", body.get("why", ""), edited=text)
    before = await asyncio.to_thread(store.answer, stored.request.id, given)
    now = before if before is not None else await asyncio.to_thread(store.get, stored.request.id)
    return {"holds": before is None, "request": request_view(now)}


async def decisions(context: RequestContext) -> JsonDict:
    """Who decided what, and by which rule; the newest last."""
    found = await asyncio.to_thread(context.served.approvals.decisions.latest, context.query["limit"])
    return {"decisions": [{**each._asdict(), "keys": list(each.keys)} for each in found]}


async def revoke(context: RequestContext) -> JsonDict:
    """Revoke a lasting approval: by a grant's number, or by the key of an entry that is always allowed."""
    name = context.path["id"]
    grants = context.served.approvals.grants
    taken = (
        await asyncio.to_thread(grants.revoke, int(name))
        if name.isascii() and name.isdigit() and len(name) < 16
        else None
    )
    if taken is None and not await asyncio.to_thread(remove_from_allowlist, config_path(), name):
        raise HttpError(404, "not_found", f"nothing is allowed as {name[:100]!r}")
    context.served.bus.publish("grants.changed")
    return {"revoked": taken.key if taken else name}


_EDIT = "edit"
_ANSWER = record(
    ("decision",),
    decision={"type": "string", "enum": [*(each.value for each in Decision), _EDIT]},
    why=bounded(1000),
    text=bounded(10_000),
)
_REQUEST = loose(id=TEXT, state=TEXT, tool=TEXT, pieces=many(ANYTHING), offers=many(ANYTHING))

ENDPOINTS = (
    Endpoint(
        "GET", "/v1/approvals", waiting, answer=record(waiting=many(_REQUEST), grants=many(ANYTHING), always=many(TEXT))
    ),
    Endpoint(
        "GET", "/v1/decisions", decisions, query={"limit": count(100, 10_000)}, answer=record(decisions=many(ANYTHING))
    ),
    Endpoint("GET", "/v1/approvals/{id}", one, answer=_REQUEST),
    Endpoint(
        "POST",
        "/v1/approvals/{id}",
        answer,
        role=Role.APPROVE,
        body=_ANSWER,
        detail=lambda context: str(context.body["decision"]),
        answer=record(holds=FLAG, request=_REQUEST),
    ),
    Endpoint("DELETE", "/v1/grants/{id:path}", revoke, role=Role.APPROVE, answer=record(revoked=TEXT)),
)

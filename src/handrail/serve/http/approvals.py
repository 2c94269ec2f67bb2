"""Open approval questions and their answers: the first answer to each counts."""

from ...approval.settings import remove_from_allowlist
from ...config.paths import config_path
from ...protocols import Answer, Decision
from ...store.approvals import StoredGrant
from ...types import JsonDict
from ..endpoint import Endpoint, HttpError, RequestContext, Role
from ..shared_state import request_view
from .shapes import ANYTHING, FLAG, TEXT, bounded, count, loose, many, record

_EDIT = "edit"
_WORD = {"type": "string", "enum": [*(each.value for each in Decision), _EDIT]}
_ANSWER = record(("decision",), decision=_WORD, why=bounded(1000), text=bounded(10_000))
_REQUEST = loose(id=TEXT, state=TEXT, tool=TEXT, pieces=many(ANYTHING), offers=many(ANYTHING))
_WAITING = record(waiting=many(_REQUEST), grants=many(ANYTHING), always=many(TEXT))
_ANSWERED = record(holds=FLAG, request=_REQUEST)


@Endpoint("GET", "/v1/approvals", _WAITING)
def waiting(context: RequestContext) -> JsonDict:
    """Open questions, and what is allowed for longer than once."""
    store, settings = context.served.approvals, context.served.app.gate.settings
    settings.policy()  # reads the file again if it has changed
    return {
        "waiting": [request_view(stored) for stored in store.pending()],
        "grants": [_grant_view(grant) for grant in store.grants.all()],
        "always": list(settings.config.command_allowlist),
    }


def _grant_view(grant: StoredGrant) -> JsonDict:
    until = {"granted_at": grant.created, "expires_at": grant.expires, "uses_left": grant.uses_left}
    return {"id": str(grant.id), "scope": grant.scope, "key": grant.key, "by": grant.by, **until}


@Endpoint("GET", "/v1/decisions", record(decisions=many(ANYTHING)), limit=count(100, 10_000))
def decisions(context: RequestContext) -> JsonDict:
    """Who decided what, and by which rule; the newest last."""
    found = context.served.approvals.decisions.latest(context.query["limit"])
    return {"decisions": [{**each._asdict(), "keys": list(each.keys)} for each in found]}


@Endpoint("GET", "/v1/approvals/{id}", _REQUEST)
def one(context: RequestContext) -> JsonDict:
    """One question and its outcome."""
    return request_view(context.served.approvals.get(context.path["id"]))


@Endpoint(
    "POST", "/v1/approvals/{id}", _ANSWERED, role=Role.APPROVE, body=_ANSWER, detail=lambda to: str(to.body["decision"])
)
def answer(context: RequestContext) -> JsonDict:
    """Answer a question. The first answer counts: `holds` is false for a late one, and the question shows the outcome. `edit` has
    `text` run instead of what was asked about; it is judged like any other, and may be asked about again."""
    store, body = context.served.approvals, context.body
    stored, word = store.get(context.path["id"]), body["decision"]
    offered = [each.value for each in stored.request.offers] + [_EDIT] * bool(stored.request.editable)
    if word not in offered:
        raise HttpError(422, "not_offered", f"this question offers {', '.join(offered)}, not {word}")
    text = body.get("text", "") if word == _EDIT else ""
    if word == _EDIT and not text.strip():
        raise HttpError(422, "invalid_body", "edit needs `text`: what is to run instead")
    decision = Decision.DENY if text else Decision(word)
    given = Answer(decision, f"web:{context.who.name}", body.get("why", ""), edited=text)
    before = store.answer(stored.request.id, given)
    return {"holds": before is None, "request": request_view(before or store.get(stored.request.id))}


@Endpoint("DELETE", "/v1/grants/{id:path}", record(revoked=TEXT), role=Role.APPROVE)
def revoke(context: RequestContext) -> JsonDict:
    """Revoke a lasting approval: by a grant's number, or by the key of an entry that is always allowed."""
    name = context.path["id"]
    is_number = name.isascii() and name.isdigit() and len(name) < 16
    taken = context.served.approvals.grants.revoke(int(name)) if is_number else None
    if taken is None and not remove_from_allowlist(config_path(), name):
        raise HttpError(404, "not_found", f"nothing is allowed as {name[:100]!r}")
    context.served.bus.publish("grants.changed")
    return {"revoked": taken.key if taken else name}

"""Ask the client's user before something dangerous happens, in both families of the protocol."""

from __future__ import annotations

import contextvars
from typing import Any, NamedTuple

import mcp_types

from ...approval.approvers.prompt import VIEW, has_more, question
from ...protocols import Answer, ApprovalRequest, Decision
from .client_requests import ClientRequest

_FIELD, _WHY = "decision", "why"
_WIDTH = 100
_MAX_LINES = 40
# The answer that asks to see the rest before deciding.
VIEW_ALL = object()

current: contextvars.ContextVar[ClientRequest | None] = contextvars.ContextVar("mcp_client_request", default=None)


class Question(NamedTuple):
    """A request as it is put to the client's user; `is_whole` with all that would be written."""

    request: ApprovalRequest
    is_whole: bool = False

    @property
    def has_more(self) -> bool:
        return not self.is_whole and has_more(self.request, _MAX_LINES)


class ClientApprover:
    """The client's user. A client that cannot ask leaves the question to the next approver."""

    name = "mcp client"

    async def decide(self, request: ApprovalRequest) -> Any:
        call = current.get()
        if call is None or not call.supports("elicitation/create"):
            return None
        asked = Question(request)
        while True:
            key = f"approval {request.id}"
            params = mcp_types.ElicitRequestFormParams(message=_message(asked), requested_schema=form(asked))
            # Nobody can have approved what was not asked yet.
            responses = await call.ask({key: mcp_types.ElicitRequest(params=params)}, beforehand=False)
            reply = reply_of(responses[key], asked)
            if reply is not VIEW_ALL:
                return reply
            asked = Question(request, is_whole=True)


def form(asked: Question) -> Any:
    offers = [each.value for each in asked.request.offers]
    choice: dict[str, Any] = {"type": "string", "title": "Decision", "description": "Without an answer it is denied."}
    choice["enum"] = [*offers, VIEW] if asked.has_more else offers
    why = {
        "type": "string",
        "title": "Why not, or what instead",
        "description": "The model reads it.",
        "maxLength": 1000,
    }
    return {"type": "object", "properties": {_FIELD: choice, _WHY: why}, "required": [_FIELD]}


def reply_of(answer: Any, asked: Question) -> Any:
    """An offered decision that was accepted, or VIEW_ALL; everything else is a denial."""
    action, content = getattr(answer, "action", ""), getattr(answer, "content", None) or {}
    chosen = content.get(_FIELD)
    if action == "accept":
        if chosen == VIEW and asked.has_more:
            return VIEW_ALL
        for offered in asked.request.offers:
            if offered.value == chosen and offered.allows:
                return Answer(offered, ClientApprover.name)
    closed = {"decline": "the question was declined", "cancel": "the question was closed"}.get(action, "")
    return Answer(Decision.DENY, ClientApprover.name, str(content.get(_WHY) or closed)[:1000])


def _message(asked: Question) -> str:
    lines = None if asked.is_whole else _MAX_LINES
    how = f"answer {VIEW} to see all"
    return question(asked.request, width=_WIDTH, painted=False, max_lines=lines, how=how).strip("\n")

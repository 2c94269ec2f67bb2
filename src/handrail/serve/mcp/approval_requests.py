"""Ask the client's user before something dangerous happens, in both families of the protocol.

In the handshake family the server sends a question during a call. In the newer family the call answers "input required", and the
client repeats the call with the answer; until then the call is parked, so that it runs once.
"""

from __future__ import annotations

import asyncio
import contextvars
import secrets
from typing import TYPE_CHECKING, Any

from ...approval.approvers.prompt import question
from ...base.lazy_module import lazy_import
from ...errors import InvalidArguments
from ...protocols import Answer, ApprovalRequest, Decision, Reply
from ...types import CancelToken

if TYPE_CHECKING:
    import mcp_types
else:
    mcp_types = lazy_import("mcp_types")

_FIELD = "decision"
_KEY = "approval"
_WIDTH = 100


class CallInProgress:
    """One call of a client, which may wait for an answer between two requests."""

    def __init__(self, name: str, arguments: Any, owner: str, cancel: CancelToken) -> None:
        self.identity = (name, arguments, owner)
        self.cancel = cancel
        self.work: asyncio.Task[Any] | None = None
        self.session: Any = None  # to send questions on; None if the protocol has no back channel
        self.can_ask = False
        self.asked: asyncio.Future[ApprovalRequest] = asyncio.get_running_loop().create_future()
        self.answered: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

    @property
    def may_park(self) -> bool:
        """Whether the question is an answer to the request, which the client then repeats."""
        return self.can_ask and self.session is None

    def reset(self) -> None:
        """Ready for another question."""
        self.asked = asyncio.get_running_loop().create_future()
        self.answered = asyncio.get_running_loop().create_future()


current: contextvars.ContextVar[CallInProgress | None] = contextvars.ContextVar("mcp_call_in_progress", default=None)


class ClientApprover:
    """The client's user. A client that cannot ask leaves the question to the next approver."""

    name = "mcp client"

    async def decide(self, request: ApprovalRequest) -> Reply:
        call = current.get()
        if call is None or not call.can_ask:
            return None
        if call.session is not None:
            answer = await call.session.elicit_form(_message(request), form(request))
            return reply_of(answer, request)
        call.asked.set_result(request)
        return await call.answered


class ParkedCalls:
    """Calls that wait for their client's answer, by a secret that only the client knows."""

    def __init__(self) -> None:
        self._calls: dict[str, tuple[CallInProgress, ApprovalRequest]] = {}

    def park(self, call: CallInProgress, request: ApprovalRequest) -> Any:
        secret = secrets.token_urlsafe(24)
        self._calls[secret] = (call, request)
        if call.work is not None:  # the client did not answer before the gate's timeout
            call.work.add_done_callback(lambda _: self._calls.pop(secret, None))
        params = mcp_types.ElicitRequestFormParams(message=_message(request), requested_schema=form(request))
        question = mcp_types.ElicitRequest(params=params)
        return mcp_types.InputRequiredResult(input_requests={_KEY: question}, request_state=secret)

    def resume(self, secret: str, identity: tuple[str, Any, str], responses: Any) -> CallInProgress:
        """The parked call, with its answer set. Raises InvalidArguments for any other call."""
        call, request = self._calls.get(secret, (None, None))
        if call is None or request is None or call.identity != identity:
            raise InvalidArguments("this is not an answer to one of our questions, or it came too late; call again")
        del self._calls[secret]
        answered = call.answered
        call.reset()
        answered.set_result(reply_of((responses or {}).get(_KEY), request))
        return call


def form(request: ApprovalRequest) -> Any:
    offers = [each.value for each in request.offers]
    choice = {"type": "string", "title": "Decision", "enum": offers, "description": "Without an answer it is denied."}
    return {"type": "object", "properties": {_FIELD: choice}, "required": [_FIELD]}


def reply_of(answer: Any, request: ApprovalRequest) -> Reply:
    """An offered decision that was accepted; everything else is a denial."""
    action, content = getattr(answer, "action", ""), getattr(answer, "content", None) or {}
    chosen = content.get(_FIELD)
    if action == "accept":
        for offered in request.offers:
            if offered.value == chosen:
                return Answer(offered, ClientApprover.name)
    return Answer(Decision.DENY, ClientApprover.name)


def _message(request: ApprovalRequest) -> str:
    return question(request, width=_WIDTH, painted=False).strip("\n")

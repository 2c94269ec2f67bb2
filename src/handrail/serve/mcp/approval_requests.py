"""Ask the client's user before something dangerous happens, in both families of the protocol.

In the handshake family the server sends a question during a call. In the newer family the call answers "input required", and the
client repeats the call with the answer; until then the call is parked, so that it runs once.
"""

from __future__ import annotations

import asyncio
import contextvars
import secrets
from typing import TYPE_CHECKING, Any, NamedTuple

from ...approval.approvers.prompt import VIEW, has_more, question
from ...base.lazy_module import lazy_import
from ...errors import InvalidArguments
from ...protocols import Answer, ApprovalRequest, Decision
from ...types import CancelToken

if TYPE_CHECKING:
    import mcp_types
else:
    mcp_types = lazy_import("mcp_types")

_FIELD = "decision"
_KEY = "approval"
_WIDTH = 100
_MAX_LINES = 40
# The answer that asks to see the rest before deciding.
VIEW_ALL = object()


class CallInProgress:
    """One call of a client, which may wait for an answer between two requests."""

    def __init__(self, name: str, arguments: Any, owner: str, cancel: CancelToken) -> None:
        self.identity = (name, arguments, owner)
        self.cancel = cancel
        self.work: asyncio.Task[Any] | None = None
        self.session: Any = None  # to send questions on; None if the protocol has no back channel
        self.can_ask = False
        self.asked: asyncio.Future[Question] = asyncio.get_running_loop().create_future()
        self.answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    @property
    def may_park(self) -> bool:
        """Whether the question is an answer to the request, which the client then repeats."""
        return self.can_ask and self.session is None

    def reset(self) -> None:
        """Ready for another question."""
        self.asked = asyncio.get_running_loop().create_future()
        self.answered = asyncio.get_running_loop().create_future()


current: contextvars.ContextVar[CallInProgress | None] = contextvars.ContextVar("mcp_call_in_progress", default=None)


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
        if call is None or not call.can_ask:
            return None
        is_whole = False
        while True:
            asked = Question(request, is_whole)
            if call.session is not None:
                reply = reply_of(await call.session.elicit_form(_message(asked), form(asked)), asked)
            else:
                call.asked.set_result(asked)
                reply = await call.answered
            if reply is not VIEW_ALL:
                return reply
            is_whole = True


class ParkedCalls:
    """Calls that wait for their client's answer, by a secret that only the client knows."""

    def __init__(self) -> None:
        self._calls: dict[str, tuple[CallInProgress, Question]] = {}

    def park(self, call: CallInProgress, asked: Question) -> Any:
        secret = secrets.token_urlsafe(24)
        self._calls[secret] = (call, asked)
        if call.work is not None:  # the client did not answer before the gate's timeout
            call.work.add_done_callback(lambda _: self._calls.pop(secret, None))
        params = mcp_types.ElicitRequestFormParams(message=_message(asked), requested_schema=form(asked))
        question = mcp_types.ElicitRequest(params=params)
        return mcp_types.InputRequiredResult(input_requests={_KEY: question}, request_state=secret)

    def resume(self, secret: str, identity: tuple[str, Any, str], responses: Any) -> CallInProgress:
        """The parked call, with its answer set. Raises InvalidArguments for any other call."""
        call, asked = self._calls.get(secret, (None, None))
        if call is None or asked is None or call.identity != identity:
            raise InvalidArguments("this is not an answer to one of our questions, or it came too late; call again")
        del self._calls[secret]
        answered = call.answered
        call.reset()
        answered.set_result(reply_of((responses or {}).get(_KEY), asked))
        return call


def form(asked: Question) -> Any:
    offers = [each.value for each in asked.request.offers]
    choice: dict[str, Any] = {"type": "string", "title": "Decision", "description": "Without an answer it is denied."}
    choice["enum"] = [*offers, VIEW] if asked.has_more else offers
    return {"type": "object", "properties": {_FIELD: choice}, "required": [_FIELD]}


def reply_of(answer: Any, asked: Question) -> Any:
    """An offered decision that was accepted, or VIEW_ALL; everything else is a denial."""
    action, content = getattr(answer, "action", ""), getattr(answer, "content", None) or {}
    chosen = content.get(_FIELD)
    if action == "accept":
        if chosen == VIEW and asked.has_more:
            return VIEW_ALL
        for offered in asked.request.offers:
            if offered.value == chosen:
                return Answer(offered, ClientApprover.name)
    return Answer(Decision.DENY, ClientApprover.name)


def _message(asked: Question) -> str:
    lines = None if asked.is_whole else _MAX_LINES
    how = f"answer {VIEW} to see all"
    return question(asked.request, width=_WIDTH, painted=False, max_lines=lines, how=how).strip("\n")

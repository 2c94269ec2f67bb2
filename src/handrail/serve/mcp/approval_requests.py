"""Ask the person at the client before something dangerous happens, in both families of the protocol.

The handshake ones let the server send a question while a call runs. In the newer ones a call answers "input required", and
the client sends the same call again with the answer: meanwhile the call waits here, so that it happens once.
"""

from __future__ import annotations

import asyncio
import contextvars
import secrets
from typing import TYPE_CHECKING, Any

from ...approval.approvers.prompt import question
from ...errors import InvalidArguments
from ...protocols import Answer, ApprovalRequest, Decision, Reply

if TYPE_CHECKING:
    from ...types import CancelToken

_FIELD = "decision"
_KEY = "approval"
_WIDTH = 100


class CallUnderWay:
    """One call of a client, which may wait for an answer between two requests of it."""

    def __init__(self, name: str, arguments: Any, owner: str, cancel: CancelToken) -> None:
        self.identity = (name, arguments, owner)
        self.cancel = cancel
        self.work: asyncio.Task[Any] | None = None
        self.session: Any = None  # the request's, to send questions on; None where the protocol has none
        self.can_ask = False
        self.asked: asyncio.Future[ApprovalRequest] = asyncio.get_running_loop().create_future()
        self.answered: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

    @property
    def may_park(self) -> bool:
        """Whether the client is asked by an answer to its request, with which it comes back."""
        return self.can_ask and self.session is None

    def again(self) -> None:
        """Ready for another question."""
        self.asked = asyncio.get_running_loop().create_future()
        self.answered = asyncio.get_running_loop().create_future()


current: contextvars.ContextVar[CallUnderWay | None] = contextvars.ContextVar("mcp_call_under_way", default=None)


class ClientApprover:
    """Whoever sits at the client. A client that cannot ask leaves the question to the next approver."""

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


class Waiting:
    """Calls that wait for their client to come back with an answer, by a word that only the client was told."""

    def __init__(self) -> None:
        self._calls: dict[str, tuple[CallUnderWay, ApprovalRequest]] = {}

    def park(self, call: CallUnderWay, request: ApprovalRequest) -> Any:
        from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

        word = secrets.token_urlsafe(24)
        self._calls[word] = (call, request)
        if call.work is not None:  # nobody came back, and the gate's time is over
            call.work.add_done_callback(lambda _: self._calls.pop(word, None))
        params = ElicitRequestFormParams(message=_message(request), requested_schema=form(request))
        return InputRequiredResult(input_requests={_KEY: ElicitRequest(params=params)}, request_state=word)

    def resume(self, word: str, identity: tuple[str, Any, str], responses: Any) -> CallUnderWay:
        """The call that waited under that word, with its answer. Raises InvalidArguments for any other call."""
        call, request = self._calls.get(word, (None, None))
        if call is None or request is None or call.identity != identity:
            raise InvalidArguments("this is no answer to a question of ours, or it came too late; call again")
        del self._calls[word]
        answered = call.answered
        call.again()
        answered.set_result(reply_of((responses or {}).get(_KEY), request))
        return call


def form(request: ApprovalRequest) -> Any:
    offers = [each.value for each in request.offers]
    choice = {"type": "string", "title": "Decision", "enum": offers, "description": "No answer is a no."}
    return {"type": "object", "properties": {_FIELD: choice}, "required": [_FIELD]}


def reply_of(answer: Any, request: ApprovalRequest) -> Reply:
    """Only an offered decision that was accepted is one; everything else is a no."""
    action, content = getattr(answer, "action", ""), getattr(answer, "content", None) or {}
    said = content.get(_FIELD)
    if action == "accept":
        for offered in request.offers:
            if offered.value == said:
                return Answer(offered, ClientApprover.name)
    return Answer(Decision.DENY, ClientApprover.name)


def _message(request: ApprovalRequest) -> str:
    return question(request, width=_WIDTH, painted=False).strip("\n")

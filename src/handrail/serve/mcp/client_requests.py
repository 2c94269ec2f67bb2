"""Requests of a client that need something of it before they can be completed.

In the handshake family the server sends its question during the request. In the newer family the request is answered with
"input required", and the client repeats it with the responses; until then it is parked, so that it runs once.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import secrets
import warnings
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NamedTuple

import mcp_types
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from ...approval.approvers.prompt import VIEW, has_more, question
from ...errors import ToolUnavailable
from ...protocols import Answer, ApprovalRequest, Decision
from ...types import CancelToken, JsonDict, Progress

# What a server may ask for: the client's capability, the request, and its results.
_KINDS: dict[str, tuple[str, Any, tuple[Any, ...]]] = {
    "elicitation/create": ("elicitation", mcp_types.ElicitRequest, (mcp_types.ElicitResult,)),
    "sampling/createMessage": (
        "sampling",
        mcp_types.CreateMessageRequest,
        (mcp_types.CreateMessageResult, mcp_types.CreateMessageResultWithTools),
    ),
    "roots/list": ("roots", mcp_types.ListRootsRequest, (mcp_types.ListRootsResult,)),
}
MISSING_CAPABILITY = -32021
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_FIELD, _WHY = "decision", "why"
_WIDTH = 100
_MAX_LINES = 40
# The answer that asks to see the rest before deciding.
VIEW_ALL = object()
current: contextvars.ContextVar[ClientRequest | None] = contextvars.ContextVar("mcp_client_request", default=None)


class ClientRequest:
    """One request of a client, from its start to its result. It may outlive several messages."""

    def __init__(self, context: Any, params: Any, identity: tuple[Any, ...], *, log_level: str = LEVELS[0]) -> None:
        self.identity = identity
        self._log_level = log_level  # the lowest that a client of the handshake family wants
        self.cancel = CancelToken()
        self.work: asyncio.Task[Any]
        self.asked = asyncio.Event()  # set while something is pending
        self.pending: dict[str, tuple[Any, asyncio.Future[Any]]] = {}
        self._given: JsonDict = dict(params.input_responses or {})
        self._loop = asyncio.get_running_loop()
        self._count = 0.0
        self._sending: set[asyncio.Task[None]] = set()
        self.failure: Exception | None = None  # why a tool that failed could not be served to this client at all
        self.continue_in(context)

    def continue_in(self, context: Any) -> None:
        """Questions and notifications go to this message of the client from now on."""
        self._context = context
        # Without a back channel a question is an answer to the request.
        self.may_park = context.protocol_version in MODERN_PROTOCOL_VERSIONS

    def start(self, work: Coroutine[Any, Any, Any]) -> None:
        self.work = asyncio.ensure_future(work)

    def supports(self, method: str) -> bool:
        capabilities = self._context.session.client_capabilities
        return method in _KINDS and getattr(capabilities, _KINDS[method][0], None) is not None

    async def request(self, requests: Mapping[str, Mapping[str, Any]]) -> JsonDict:
        """See `protocols.CallingClient`."""
        missing = sorted({each["method"] for each in requests.values() if not self.supports(each["method"])})
        if missing:
            why = f"the MCP client does not support {', '.join(missing)}"
            needed: JsonDict = {_KINDS[method][0]: {} for method in missing if method in _KINDS}
            self.failure = MCPError(MISSING_CAPABILITY, why, data={"requiredCapabilities": needed})
            raise ToolUnavailable(why)
        asked = {key: _KINDS[each["method"]][1].model_validate(dict(each)) for key, each in requests.items()}
        return {key: dumped(each) for key, each in (await self.ask(asked)).items()}

    async def ask(self, requests: Mapping[str, Any], *, beforehand: bool = True) -> JsonDict:
        """The client's responses. `beforehand`: one that came with the request itself counts too."""
        if asyncio.get_running_loop() is not self._loop:  # a tool that runs in a thread
            there = asyncio.run_coroutine_threadsafe(self.ask(requests, beforehand=beforehand), self._loop)
            return await asyncio.wrap_future(there)
        if not self.may_park:
            return {key: await self._sent(each) for key, each in requests.items()}
        waiting = {}
        for key, request in requests.items():
            waiting[key] = future = self._loop.create_future()
            given = self._given.pop(key, None) if beforehand else None
            if isinstance(given, _KINDS[request.method][2]):
                future.set_result(given)
            else:
                self.pending[key] = (request, future)
        if self.pending:
            self.asked.set()
        try:
            return {key: await future for key, future in waiting.items()}
        finally:
            for key in waiting:
                self.pending.pop(key, None)
            self._settle()

    def answer(self, responses: Mapping[str, Any] | None) -> None:
        """Hand over what the client responded; the rest stays pending, and what nobody asked for is ignored."""
        for key, response in (responses or {}).items():
            if key in self.pending and isinstance(response, _KINDS[self.pending[key][0].method][2]):
                _, future = self.pending.pop(key)
                if not future.done():
                    future.set_result(response)
        self._settle()

    def _settle(self) -> None:
        if not self.pending:
            self.asked.clear()

    async def _sent(self, request: Any) -> Any:
        related = ServerMessageMetadata(related_request_id=self._context.request_id)
        return await self._context.session.send_request(request, _KINDS[request.method][2][0], metadata=related)

    def log(self, level: str, message: object) -> None:
        """See `protocols.CallingClient`."""
        context = self._context

        async def send() -> None:
            with contextlib.suppress(Exception), warnings.catch_warnings():  # the client is gone
                warnings.simplefilter("ignore")  # older clients have it, newer ones ask for it
                await context.session.send_log_message(level, message, "handrail", context.request_id)

        if LEVELS.index(level) >= LEVELS.index(self._log_level):
            self._send(send)

    def report(self, update: Progress) -> None:
        """Report progress to the client. Handlers may run on any thread."""
        self._count += 1
        context, total = self._context, None if update.fraction is None else 1.0
        progress = self._count if update.fraction is None else update.fraction

        async def send() -> None:
            with contextlib.suppress(Exception):  # the client is gone, or did not ask for it
                await context.session.report_progress(progress, total, update.message)

        self._send(send)

    def _send(self, send: Callable[[], Coroutine[Any, Any, None]]) -> None:
        def start() -> None:
            sending = asyncio.ensure_future(send())
            self._sending.add(sending)
            sending.add_done_callback(self._sending.discard)

        with contextlib.suppress(RuntimeError):  # the server has ended
            self._loop.call_soon_threadsafe(start)

    async def result(self) -> Any:
        """What the work gave, after all that it reported: nothing may follow the answer to a request."""
        while self._sending:
            await asyncio.wait(set(self._sending))
        return self.work.result()

    def give_up(self, why: str) -> None:
        self.cancel.cancel(why)
        self.work.cancel()


class ParkedRequests:
    """Requests that wait for their client's responses, by a secret that only the client knows."""

    def __init__(self) -> None:
        self._requests: dict[str, ClientRequest] = {}

    def park(self, request: ClientRequest) -> Any:
        secret = secrets.token_urlsafe(24)
        self._requests[secret] = request
        # The client may never respond, and the request end by its timeout.
        request.work.add_done_callback(lambda _: self._requests.pop(secret, None))
        asked = {key: each for key, (each, _) in request.pending.items()}
        return mcp_types.InputRequiredResult(input_requests=asked, request_state=secret)

    def resume(self, context: Any, params: Any, identity: tuple[Any, ...]) -> ClientRequest:
        """The parked request, with what was responded. Raises MCPError for any other."""
        request = self._requests.get(params.request_state)
        if request is None or request.identity != identity:
            why = "this is not an answer to one of our questions, or it came too late; call again"
            raise MCPError(mcp_types.INVALID_PARAMS, why)
        del self._requests[params.request_state]
        request.continue_in(context)
        request.answer(params.input_responses)
        return request


def dumped(value: Any) -> JsonDict:
    found: JsonDict = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return found


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
            key, lines = f"approval {request.id}", None if asked.is_whole else _MAX_LINES
            how = f"answer {VIEW} to see all"
            text = question(request, width=_WIDTH, painted=False, max_lines=lines, how=how).strip("\n")
            params = mcp_types.ElicitRequestFormParams(message=text, requested_schema=form(asked))
            # Nobody can have approved what was not asked yet.
            responses = await call.ask({key: mcp_types.ElicitRequest(params=params)}, beforehand=False)
            if (reply := reply_of(responses[key], asked)) is not VIEW_ALL:
                return reply
            asked = Question(request, is_whole=True)


def form(asked: Question) -> Any:
    offers = [each.value for each in asked.request.offers]
    choice: dict[str, Any] = {"type": "string", "title": "Decision", "description": "Without an answer it is denied."}
    choice["enum"] = [*offers, VIEW] if asked.has_more else offers
    why: JsonDict = {"type": "string", "title": "Why not, or what instead", "description": "The model reads it."}
    why["maxLength"] = 1000
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

"""The approvers that need no dialog of their own: refuse, queue, send elsewhere, and try several in turn."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ...protocols import Answer, ApprovalRequest, Approver, Decision, Reply
from ..requests import reply_of

log = logging.getLogger(__name__)

Send = Callable[[ApprovalRequest], Awaitable[Reply]]


class PolicyApprover:
    """Denies everything: for programs that run unattended. What they may do anyway is allowed in config.yaml beforehand."""

    name = "policy"

    def decide(self, request: ApprovalRequest) -> Answer:  # noqa: ARG002  an Approver's signature
        return Answer(Decision.DENY, self.name, "nobody is there to ask")


class QueueApprover:
    """Waits until the request is answered through the store (`handrail approvals answer`, another device) or expires."""

    name = "queue"

    async def decide(self, request: ApprovalRequest) -> Reply:  # noqa: ARG002  an Approver's signature
        never: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        return await never


class CallbackApprover:
    """Calls `send` with the request, to show it where the user is: a chat, a web page, a phone. `send` returns the answer, or
    None when the answer will come through `ApprovalStore.answer(request.id, ...)`: from a button, another process, after a
    restart."""

    def __init__(self, send: Send, *, name: str = "gateway") -> None:
        self.name = name
        self._send = send

    async def decide(self, request: ApprovalRequest) -> Reply:
        reply = await self._send(request)
        return await QueueApprover().decide(request) if reply is None else reply


class ChainApprover:
    """Asks one approver after the other: one that returns None, or fails, passes the request on. The last None is a no."""

    def __init__(self, *approvers: Approver) -> None:
        self._approvers = approvers

    async def decide(self, request: ApprovalRequest) -> Reply:
        for approver in self._approvers:
            name = str(getattr(approver, "name", "") or type(approver).__name__)
            try:
                reply = await reply_of(approver, request)
            except (Exception, SystemExit) as error:  # noqa: BLE001  an approver may be anybody's; the next one decides
                log.warning("the approver %s failed: %s: %s", name, type(error).__name__, error)
                continue
            if isinstance(reply, Decision):
                return Answer(reply, name)
            if isinstance(reply, Answer):
                return reply._replace(by=reply.by or name)
        return None

"""Send the question to where the user is: a chat, a web page, a telephone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ...protocols import ApprovalRequest, Reply
from .queue import QueueApprover

Send = Callable[[ApprovalRequest], Awaitable[Reply]]


class CallbackApprover:
    """Calls `send` with the request. It gives back the answer, or None when the message is out and the answer will come
    through `ApprovalStore.answer(request.id, ...)`: from a button, from another process, after a restart."""

    def __init__(self, send: Send, *, name: str = "gateway") -> None:
        self.name = name
        self._send = send

    async def decide(self, request: ApprovalRequest) -> Reply:
        reply = await self._send(request)
        return await QueueApprover().decide(request) if reply is None else reply

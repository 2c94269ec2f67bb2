"""Leave the question where anybody can answer it: `handrail approvals answer`, in another terminal, on another device."""

from __future__ import annotations

import asyncio

from ...protocols import ApprovalRequest, Reply


class QueueApprover:
    """Waits. The answer comes through the store, or the time is over."""

    name = "queue"

    async def decide(self, request: ApprovalRequest) -> Reply:  # noqa: ARG002  an Approver's signature
        never: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        return await never

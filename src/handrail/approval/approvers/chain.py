"""Ask one after the other until somebody decides."""

from __future__ import annotations

import logging

from ...protocols import Answer, ApprovalRequest, Approver, Decision, Reply
from ..requests import reply_of

log = logging.getLogger(__name__)


class ChainApprover:
    """Who says None, or fails, passes the question on to the next. The last one's None is a no."""

    def __init__(self, *approvers: Approver) -> None:
        self._approvers = approvers

    async def decide(self, request: ApprovalRequest) -> Reply:
        for approver in self._approvers:
            name = str(getattr(approver, "name", "") or type(approver).__name__)
            try:
                reply = await reply_of(approver, request)
            except Exception as error:  # noqa: BLE001  an approver may be anybody's; the next one decides
                log.warning("the approver %s failed: %s: %s", name, type(error).__name__, error)
                continue
            if isinstance(reply, Decision):
                return Answer(reply, name)
            if isinstance(reply, Answer):
                return reply._replace(by=reply.by or name)
        return None

"""The errors that the model gets for what may not happen: why, not to try another way, and what to do instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import Denied
from .policy import DecidedBy

if TYPE_CHECKING:
    from ..protocols import Answer, ApprovalRequest
    from .policy import Ruling

_NO_OTHER_WAY = "Do not try to reach the same by another command, tool or file."
_NEVER = "No approval and no setting allows it."
_TELL = "Tell the user what you wanted to do and why; they can do it themselves."
_NOBODY = (
    "Tell the user what you wanted to do and why. They can do it themselves, run this where they can be asked, or allow it "
    "in config.yaml."
)
_PLANNING = "Go on with the plan, and tell the user what you would change; they switch the mode when it is to be done."
_DENIED_BY_USER = "Go on without it, or ask the user what to do instead."


def refused(ruling: Ruling) -> Denied:
    """Denied by the floor or the deny list."""
    finding = ruling.refused
    assert finding is not None
    if ruling.by is DecidedBy.PLAN:
        return Denied(f"Not run: {finding.why}. {_PLANNING}", rules=[finding.rule], decided_by=ruling.by.value)
    never = _NEVER if ruling.by is DecidedBy.FLOOR else "The user has forbidden it in config.yaml."
    return Denied(
        f"Not run: {finding.why} ({finding.rule}). {never} {_NO_OTHER_WAY} {_TELL}",
        rules=[finding.rule],
        decided_by=ruling.by.value,
    )


def unanswered(request: ApprovalRequest, answer: Answer, *, by_person: bool) -> Denied:
    """Denied by an approver, or because nobody could be asked."""
    reasons = "; ".join(dict.fromkeys(f"{concern.why} ({concern.rule})" for concern in request.concerns))
    reason = f": {answer.why}" if answer.why else ""
    advice = _DENIED_BY_USER if by_person else _NOBODY
    return Denied(
        f"Not run: it needs approval ({reasons}), and that was denied by {answer.by}{reason}. {_NO_OTHER_WAY} {advice}",
        rules=list(dict.fromkeys(concern.rule for concern in request.concerns)),
        decided_by=answer.by,
        request_id=request.id,
    )


def unusable(error: Exception) -> Denied:
    """Settings or a store that cannot be read: then nobody knows what they forbid."""
    return Denied(
        f"Not run: the approval settings cannot be read: {error}. Nothing that passes the gate runs until that is fixed. "
        f"Tell the user; `handrail doctor` shows what is wrong.",
        decided_by="broken configuration",
    )

"""What the model is told when something may not happen: why, that another way is not wanted either, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import Denied
from .policy import By

if TYPE_CHECKING:
    from ..protocols import Answer, ApprovalRequest
    from .policy import Ruling

_NO_OTHER_WAY = "Do not try to reach the same by another command, tool or file."
_NEVER = "No answer of a person and no setting allows it."
_TELL = "Tell the user what you wanted to do and why; they can do it themselves."
_NOBODY = (
    "Tell the user what you wanted to do and why. They can do it themselves, run this where they can be asked, or allow this "
    "kind in config.yaml."
)
_PERSON_SAID_NO = "Go on without it, or ask the user what to do instead."


def refused(ruling: Ruling) -> Denied:
    """By the floor or the deny list."""
    finding = ruling.refused
    assert finding is not None
    never = _NEVER if ruling.by is By.FLOOR else "The user has forbidden it in config.yaml."
    return Denied(
        f"Not run: {finding.why} ({finding.rule}). {never} {_NO_OTHER_WAY} {_TELL}",
        rules=[finding.rule],
        decided_by=ruling.by.value,
    )


def unanswered(request: ApprovalRequest, answer: Answer, *, by_person: bool) -> Denied:
    """By whoever was asked, or because nobody was there."""
    reasons = "; ".join(dict.fromkeys(f"{concern.why} ({concern.rule})" for concern in request.concerns))
    said = f": {answer.why}" if answer.why else ""
    advice = _PERSON_SAID_NO if by_person else _NOBODY
    return Denied(
        f"Not run: it needs approval ({reasons}), and that was denied by {answer.by}{said}. {_NO_OTHER_WAY} {advice}",
        rules=list(dict.fromkeys(concern.rule for concern in request.concerns)),
        decided_by=answer.by,
        request_id=request.id,
    )


def unusable(error: Exception) -> Denied:
    """Settings or a store that cannot be read: what they forbid cannot be known."""
    return Denied(
        f"Not run: what is allowed cannot be known, because {error}. Nothing that passes the gate runs until that is mended. "
        f"Tell the user; `handrail doctor` shows what is wrong.",
        decided_by="broken configuration",
    )

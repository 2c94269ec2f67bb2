"""The question that is asked about a call, and the error that the model gets for what may not happen: why, not to try another
way, and what to do instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import Denied
from ..protocols import ApprovalRequest, Concern, Decision
from .display import MAX_CHARS
from .policy import DecidedBy
from .preview import fingerprint_of
from .secrets import secret_spans

if TYPE_CHECKING:
    from ..config.strength import Change
    from ..protocols import Action, Answer
    from ..types import ToolContext
    from .policy import Pending, Ruling

_WEAKER = "own.settings"
_LONGER = (Decision.TASK, Decision.SESSION, Decision.ALWAYS)
_NO_OTHER_WAY = "Do not try to reach the same by another command, tool or file."
_NEVER = "No approval and no setting allows it."
_TELL = "Tell the user what you wanted to do and why; they can do it themselves."
_NOBODY = (
    "Tell the user what you wanted to do and why. They can do it themselves, run this where they can be asked, or allow it "
    "in config.yaml."
)
_PLANNING = "Go on with the plan, and tell the user what you would change; they switch the mode when it is to be done."
_DENIED_BY_USER = "Go on without it, or ask the user what to do instead."


def question_of(left: Sequence[Pending], context: ToolContext, *, expires_at: float, preview: str) -> ApprovalRequest:
    """One request for everything that a call is about to do: the texts below each other, the marks moved with them."""
    texts: list[str] = []
    concerns: list[Concern] = []
    starts: dict[int, int] = {}
    for item in left:
        action = item.action
        if id(action) not in starts:
            starts[id(action)] = sum(len(text) + 1 for text in texts)
            texts.append(action.text)
        offset = starts[id(action)]
        start, end = item.finding.span
        concerns.append(
            Concern(
                item.finding.rule,
                item.finding.why,
                offset + start,
                offset + end,
                str(item.key),
                item.key.described(item.finding.why, str(action.details.get("project") or action.cwd))
                if item.key.can_last
                else "",
            )
        )
    first = left[0].action
    request = ApprovalRequest(
        tool=context.tool,
        arguments=first.details.get("arguments", {}),
        reason="; ".join(dict.fromkeys(concern.why for concern in concerns)),
        rule_key=str(first.details.get("rule") or concerns[0].rule),
        task_id=context.task_id,
        session_id=context.session_id,
        kind=first.kind,
        text="\n".join(texts),
        cwd=first.cwd,
        environment=first.environment,
        concerns=tuple(concerns),
        offers=_offers(left, lasts=all(item.key.can_last for item in left)),
        expires_at=expires_at,
        asker=str(getattr(context.agent, "label", "")),
        preview=preview,
        tool_call_id=context.tool_call_id,
        editable=_editable(texts, first),
    )
    return request._replace(fingerprint=fingerprint_of(request))


def _editable(texts: Sequence[str], action: Action) -> str:
    """The argument that can be changed: of a call that does one thing, all of which is shown."""
    is_whole = len(texts) == 1 and len(action.text) <= MAX_CHARS and not secret_spans(action.text)
    return str(action.details.get("argument", "")) if is_whole else ""


def _offers(left: Sequence[Pending], *, lasts: bool) -> tuple[Decision, ...]:
    details = [item.action.details for item in left]
    longer = () if not lasts or any(each.get("once") for each in details) else _LONGER
    tried = (Decision.TRY,) if all(each.get("can_try") for each in details) else ()
    return (Decision.ONCE, *tried, *longer, Decision.DENY)


def settings_question(waiting: Sequence[Change], context: ToolContext, *, expires_at: float) -> ApprovalRequest:
    """The question whether settings hold that became weaker while an agent is at work."""
    text = "\n".join(map(str, waiting))
    why = "the configuration became weaker while this runs; say yes only if you changed it"
    return ApprovalRequest(
        tool="configuration",
        arguments={},
        reason=why,
        rule_key=_WEAKER,
        task_id=context.task_id,
        session_id=context.session_id,
        text=text,
        concerns=(Concern(_WEAKER, why, 0, len(text), _WEAKER),),
        expires_at=expires_at,
        tool_call_id=context.tool_call_id,
    )


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

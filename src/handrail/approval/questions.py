"""The question that is asked about a call, and the error that the model gets for what may not happen: why, not to try another
way, and what to do instead."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from ..base.loops import on_worker
from ..errors import Denied
from ..protocols import Action, ApprovalRequest, Concern, Decision, Preview
from .display import MAX_CHARS, Piece, pieces, secret_spans
from .policy import DecidedBy

if TYPE_CHECKING:
    from ..config.strength import Change
    from ..protocols import Answer
    from ..types import ToolContext
    from .policy import Pending, Ruling

_WEAKER = "own.settings"
_AT_A_TERMINAL = "cli"
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
        finding, folder = item.finding, str(action.details.get("project") or action.cwd)
        start, end = (starts[id(action)] + each for each in finding.span)
        covers = item.key.described(finding.why, folder) if item.key.can_last else ""
        concerns.append(Concern(finding.rule, finding.why, start, end, str(item.key), covers))
    first = left[0].action
    # The argument that can be changed: of a call that does one thing, all of which is shown.
    is_whole = len(texts) == 1 and len(first.text) <= MAX_CHARS and not secret_spans(first.text)
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
        editable=str(first.details.get("argument", "")) if is_whole else "",
    )
    return request._replace(fingerprint=fingerprint_of(request))


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
    who = "the user" if answer.by == _AT_A_TERMINAL else answer.by
    return Denied(
        f"Not run: denied by {who}{reason}. It needs approval: {reasons}. {_NO_OTHER_WAY} {advice}",
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


_TAB = "→   "
_MAX_LINE_CHARS = 300


class Kind(Enum):
    """What a line of a diff is."""

    PLAIN = "plain"
    HEADER = "header"
    PLACE = "place"
    ADDED = "added"
    REMOVED = "removed"


class PreviewLine(NamedTuple):
    kind: Kind
    pieces: tuple[Piece, ...]

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)


def preview_of(request: ApprovalRequest) -> tuple[PreviewLine, ...]:
    """The lines of what would be written; of a long command or code its whole text, of which the question shows parts."""
    text = request.preview or (request.text if len(request.text) > MAX_CHARS else "")
    is_diff = request.preview.startswith("--- ")
    lines = tuple(PreviewLine(_kind(line) if is_diff else Kind.PLAIN, line) for line in _split(text)) if text else ()
    # The question names the file already.
    names_it = is_diff and all(line.text[4:] in (request.text, "/dev/null") for line in lines[:2])
    return lines[2:] if names_it else lines


def has_excerpt(request: ApprovalRequest) -> bool:
    """Whether the preview is the command itself, of which the question shows the marked parts already."""
    return not request.preview


class Excerpt(NamedTuple):
    """The first lines of a preview; `left` is how many there are beside them. `is_cut`: something is left out."""

    lines: tuple[PreviewLine, ...]
    left: int
    is_cut: bool


def excerpt(request: ApprovalRequest, max_lines: int | None) -> Excerpt:
    """So many lines, long ones cut; None for all of it."""
    found = preview_of(request)
    if max_lines is None:
        return Excerpt(found, 0, is_cut=False)
    is_removed = [line.kind is Kind.REMOVED for line in found]
    first = () if has_excerpt(request) else tuple(found[number] for number in first_of_diff(is_removed, max_lines))
    lines, left = tuple(map(_shortened, first)), len(found) - len(first)
    return Excerpt(lines, left, is_cut=left > 0 or lines != first)


def first_of_diff(is_removed: Sequence[bool], count: int) -> list[int]:
    """So many of a diff's lines. Removed ones get the room that the others leave, or a third: what is added must be seen."""
    removed = [number for number, gone in enumerate(is_removed) if gone]
    left_out = set(removed[max(count // 3, count - len(is_removed) + len(removed)) :])
    return [number for number in range(len(is_removed)) if number not in left_out][:count]


def _shortened(line: PreviewLine) -> PreviewLine:
    length = len(line.text)
    if length <= _MAX_LINE_CHARS:
        return line
    kept, room = [], _MAX_LINE_CHARS
    for piece in line.pieces:
        kept.append(piece._replace(text=piece.text[:room]))
        room -= len(piece.text)
        if room <= 0:
            break
    more = Piece(f" … {length - _MAX_LINE_CHARS:,} more characters", ours=True)
    return line._replace(pieces=(*kept, more))


def _split(text: str) -> Iterator[tuple[Piece, ...]]:
    line: list[Piece] = []
    for piece in pieces(text.rstrip("\n"), max_chars=len(text), tab=_TAB):
        first, *others = piece.text.split("\n")
        line += [piece._replace(text=first)] if first else []
        for other in others:
            yield tuple(line)
            line = [piece._replace(text=other)] if other else []
    yield tuple(line)


def _kind(line: tuple[Piece, ...]) -> Kind:
    start = line[0].text[:4] if line else ""
    if start in ("--- ", "+++ "):
        return Kind.HEADER
    return {"+": Kind.ADDED, "-": Kind.REMOVED, "@": Kind.PLACE}.get(start[:1], Kind.PLAIN)


MAX_PREVIEW_CHARS = 60_000
_TAIL_CHARS = 10_000


class Previews:
    """The previews of the actions that one question is about: read when somebody is asked, and compared after their yes, which is
    bound to them."""

    def __init__(self, actions: Iterable[Action]) -> None:
        makers = (action.preview for action in actions if action.preview is not None)
        self._makers = list(dict.fromkeys(makers))
        self._shown: list[Preview] = []

    async def read(self) -> str:
        """What would be written now. Raises the ToolError of a call that could not be done at all."""
        return await on_worker(self.read_now) if self._makers else ""

    def read_now(self) -> str:
        """`read`, on a thread that may wait."""
        self._shown = self._now()
        return bounded("\n".join(preview.text for preview in self._shown))

    async def check(self) -> None:
        """Raises Denied if what is there has changed since it was read: nobody has seen what would be written now."""
        if self._makers and await on_worker(self._now) != self._shown:
            raise Denied(
                "it was approved, but what it would change was changed by something else while the question was open, so "
                "nothing was done; look at it again, and repeat the call",
                decided_by="gate",
                changed_while_asked=True,
            )

    def _now(self) -> list[Preview]:
        return [make() for make in self._makers]


def bounded(text: str) -> str:
    """The start and the end of a text that is longer than anybody would read."""
    if len(text) <= MAX_PREVIEW_CHARS:
        return text
    head, tail = text[: MAX_PREVIEW_CHARS - _TAIL_CHARS], text[-_TAIL_CHARS:]
    return f"{head}\n… {len(text) - MAX_PREVIEW_CHARS:,} characters left out …\n{tail}"


def fingerprint_of(request: ApprovalRequest) -> str:
    """Equal for the same request of the same session, also when a later process repeats it."""
    parts = (
        request.session_id,
        request.task_id,
        request.tool,
        request.kind.value,
        request.text,
        request.cwd,
        request.environment,
        [concern.key for concern in request.concerns],
        *([request.preview] if request.preview else []),
    )
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()

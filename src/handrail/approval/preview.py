"""The lines of what a call would write, as a question shows them: of a diff or of a content, escape-safe, with secrets hidden.

It is read when somebody is asked, and compared after their yes, which is bound to it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from ..base.loops import on_worker
from ..errors import Denied
from ..protocols import Action, ApprovalRequest, Preview
from .display import MAX_CHARS, Piece, pieces

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
    return tuple(PreviewLine(_kind(line) if is_diff else Kind.PLAIN, line) for line in _split(text)) if text else ()


def has_excerpt(request: ApprovalRequest) -> bool:
    """Whether the preview is the command itself, of which the question shows the marked parts already."""
    return not request.preview


class Excerpt(NamedTuple):
    """The first lines of a preview; `left` is how many lines follow. `is_cut`: something is left out."""

    lines: tuple[PreviewLine, ...]
    left: int
    is_cut: bool


def excerpt(request: ApprovalRequest, max_lines: int | None) -> Excerpt:
    """So many lines, long ones cut; None for all of it."""
    found = preview_of(request)
    if max_lines is None:
        return Excerpt(found, 0, is_cut=False)
    first = () if has_excerpt(request) else found[:max_lines]
    lines, left = tuple(map(_shortened, first)), len(found) - len(first)
    return Excerpt(lines, left, is_cut=left > 0 or lines != first)


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
    """The previews of the actions that one question is about."""

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

"""What a call would write, read when somebody is asked, and compared after their yes, which is bound to it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from ..base.loops import on_worker
from ..errors import Denied
from ..protocols import Action, ApprovalRequest, Preview

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
        return await on_worker(self.read_now)

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

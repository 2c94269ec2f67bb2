"""The child agents of the chat's session: one is opened below while it works, and any can be looked at later."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from ..call_text import main_text, shortened
from ..output import visible

if TYPE_CHECKING:
    from ...store.sessions import SessionInfo, SessionStore
    from ...types import JsonDict

_POLL_SECONDS = 0.5
_MESSAGES = 8
_OUTPUT_LINES = 3


class OpenChild:
    """What one child does, from the store, where each of its messages is kept as it comes."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._session, self._since, self._number = "", 0.0, 0
        self._read_at, self._found = 0.0, list[str]()

    def begin(self, session: str) -> None:
        """A turn of this session begins."""
        self._session, self._since, self._number = session, time.time(), 0

    def next(self) -> None:
        """Open the next one; after the last none."""
        self._number = (self._number + 1) % (len(self._children()) + 1)
        self._read_at = 0.0

    def lines(self, width: int, most: int) -> list[Text]:
        if not self._number:
            return []
        if time.monotonic() - self._read_at > _POLL_SECONDS:
            children = self._children()
            info = children[min(self._number, len(children)) - 1]
            head = f"▸ {visible(info.title) or info.id} · {self._number} of {len(children)}, Ctrl-O: next"
            messages = [stored.message for stored in self._store.messages(info.id)][-_MESSAGES:]
            self._found = [head, *list(_told(messages))[-most:]]
            self._read_at = time.monotonic()
        return [Text(f"  {shortened(line, width - 3)}", "dim") for line in self._found]

    def _children(self) -> list[SessionInfo]:
        return [info for info in self._store.children(self._session) if info.created >= self._since]


def _told(messages: Iterable[JsonDict]) -> Iterator[str]:
    for message in messages:
        content = message.get("content")
        if message["role"] == "tool" and isinstance(content, str):
            lines = [line for line in visible(main_text(content) or content).splitlines() if line.strip()]
            yield from (f"    {line}" for line in lines[-_OUTPUT_LINES:])
        elif message["role"] == "assistant":
            yield from visible(content or "").splitlines() if isinstance(content, str) else ()
            for call in message.get("tool_calls") or ():
                yield f"  {visible(call['function']['name'])} {visible(call['function']['arguments'])}"

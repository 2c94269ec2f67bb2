"""The messages of a session, in memory and on disk, always well-formed: every call has its answer, in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import CallCancelled
from ..store.sessions import SessionInfo, SessionStore
from ..tools.outcome import error_outcome
from ..types import JsonDict


class Conversation:
    """What is said is written down at once: a crash loses at most the message that was being written."""

    def __init__(self, store: SessionStore, info: SessionInfo) -> None:
        self._store, self.info = store, info
        stored = store.messages(info.id)
        self._ids = [each.id for each in stored]
        self.messages: list[JsonDict] = [each.message for each in stored]
        self.complete("the program ended before this call was done")

    def __len__(self) -> int:
        return len(self.messages)

    def add(self, messages: Iterable[JsonDict], *, usage: Sequence[Any] = (0, 0, None)) -> None:
        made = list(messages)
        self._ids += self._store.append(self.info.id, made, usage=usage)
        self.messages += made

    def complete(self, reason: str) -> None:
        """Answer the calls that nobody answered: a conversation with an open call is refused by every provider."""
        open_calls = self.open_calls()
        if open_calls:
            self.add(
                {"role": "tool", "tool_call_id": call_id, "name": name, "content": error_outcome(CallCancelled(reason))}
                for call_id, name in open_calls
            )

    def open_calls(self) -> list[tuple[str, str]]:
        """Ids and names of the last answer's calls that have no result yet."""
        answered: set[str] = set()
        for message in reversed(self.messages):
            if message["role"] == "tool":
                answered.add(message["tool_call_id"])
            elif message["role"] == "assistant":
                calls = message.get("tool_calls") or ()
                return [(each["id"], each["function"]["name"]) for each in calls if each["id"] not in answered]
            else:
                break
        return []

    def call_ids(self) -> set[str]:
        return {call["id"] for message in self.messages for call in message.get("tool_calls") or ()}

    def undo(self) -> str:
        """Take back the last turn. Returns what the person had said, "" when there was nothing."""
        for place in range(len(self.messages) - 1, -1, -1):
            message = self.messages[place]
            if message["role"] == "user" and not message.get("added_by"):
                self._hide(place, len(self.messages))
                return str(message["content"])
        return ""

    def replace(self, start: int, end: int, messages: Sequence[JsonDict]) -> None:
        """Put others in place of some messages. What was there can still be searched."""
        after = self.messages[end:]
        self._hide(start, len(self.messages))
        self.add([*messages, *after])

    def _hide(self, start: int, end: int) -> None:
        self._store.hide(self.info.id, self._ids[start:end])
        del self._ids[start:end], self.messages[start:end]


def for_model(messages: Iterable[JsonDict]) -> list[JsonDict]:
    """The messages as a provider takes them: without what is only for us."""
    return [{key: value for key, value in message.items() if key != "added_by"} for message in messages]

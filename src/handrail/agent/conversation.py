"""The messages of a session, in memory and on disk, always well-formed: every call has its answer, in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..core.outcome import error_outcome
from ..errors import CallCancelled
from ..store.sessions import SessionInfo, SessionStore, StoredCall, StoredModelCall
from ..types import JsonDict

# Marks a user message that the user did not write: only we read this.
ADDED_BY = "added_by"
_CHARS_PER_IMAGE = 4_000
_CHARS_PER_MESSAGE = 16
_CHARS_PER_CALL = 90


class Conversation:
    """Every message is stored immediately: a crash loses at most the one that was being written."""

    def __init__(self, store: SessionStore, info: SessionInfo) -> None:
        self._store, self.info = store, info
        stored = store.messages(info.id)
        self._ids = [each.id for each in stored]
        self._take([each.message for each in stored])
        self.complete("the program exited before this call was done")

    def __len__(self) -> int:
        return len(self.messages)

    def add(
        self, messages: Iterable[JsonDict], *, asked: StoredModelCall | None = None, calls: Iterable[StoredCall] = ()
    ) -> None:
        made = list(messages)
        self._ids += self._store.append(self.info.id, made, asked=asked, calls=calls)
        for message in made:
            self._note(message)

    def say(self, text: str, *, by: str) -> None:
        """Add a message to the model that is not from the user."""
        self.add([{"role": "user", "content": text, ADDED_BY: by}])

    def complete(self, reason: str) -> None:
        """Answer the calls that have no result: every provider refuses a conversation with an open call."""
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

    def undo(self) -> str:
        """Remove the last turn. Returns the user's message, "" when there was none."""
        for place in range(len(self.messages) - 1, -1, -1):
            message = self.messages[place]
            if message["role"] == "user" and ADDED_BY not in message:
                self._store.hide(self.info.id, self._ids[place:])
                del self._ids[place:]
                self._take(self.messages[:place])
                return str(message["content"])
        return ""

    def replace(
        self, end: int, messages: Sequence[JsonDict], *, new: int, asked: StoredModelCall | None = None
    ) -> None:
        """Replace all messages before `end`; the first `new` of the new ones have new content, and `asked` is the model call
        that wrote them. The replaced messages can still be searched."""
        whole = [*messages, *self.messages[end:]]
        kept = len(whole) - new
        self._ids = self._store.append(self.info.id, whole, instead_of=self._ids, copies=kept, asked=asked)
        self._take(whole)

    def _take(self, messages: Sequence[JsonDict]) -> None:
        self.messages: list[JsonDict] = []
        self.for_model: list[JsonDict] = []  # as a provider accepts them: without our own marks
        self.call_ids: set[str] = set()
        self.chars = 0
        for message in messages:
            self._note(message)

    def _note(self, message: JsonDict) -> None:
        # All of it is updated, not recomputed: a long conversation must not make each turn slower.
        self.messages.append(message)
        self.for_model.append({key: value for key, value in message.items() if key != ADDED_BY})
        self.call_ids.update(call["id"] for call in message.get("tool_calls") or ())
        self.chars += chars_of(message)


def chars_of(message: JsonDict) -> int:
    """The length of a message for a model. An image counts as what it costs, not as its base64."""
    content = message.get("content")
    if isinstance(content, list):
        size = sum(len(part.get("text", "")) if part.get("type") == "text" else _CHARS_PER_IMAGE for part in content)
    else:
        size = len(str(content or ""))
    for call in message.get("tool_calls") or ():
        size += len(call["function"]["name"]) + len(call["function"]["arguments"]) + _CHARS_PER_CALL
    return size + _CHARS_PER_MESSAGE

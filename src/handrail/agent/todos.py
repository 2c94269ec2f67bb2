"""An agent's todo list."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..errors import InvalidArguments
from ..protocols import TodoItem

if TYPE_CHECKING:
    from ..store.sessions import StoredMessage


class Todos:
    """The list, in the model's order."""

    def __init__(self, *, max_items: int = 256) -> None:
        self._max_items = max_items
        self._items: dict[str, TodoItem] = {}
        self._lock = threading.Lock()

    def items(self) -> list[TodoItem]:
        with self._lock:
            return list(self._items.values())

    def replace(self, items: Sequence[TodoItem]) -> None:
        with self._lock:
            self._set({item.id: item for item in items})

    def merge(self, changes: Sequence[Mapping[str, str]]) -> None:
        """Change the items of the same id, field by field, and add the others at the end."""
        with self._lock:
            merged = dict(self._items)
            for fields in changes:
                known = merged.get(fields["id"])
                content = fields.get("content") or (known.content if known else "")
                if not content.strip():
                    raise InvalidArguments(f"item {fields['id']!r} is new and has no content")
                status = fields.get("status") or (known.status if known else "pending")
                merged[fields["id"]] = TodoItem(fields["id"], content, status)
            self._set(merged)

    def _set(self, items: dict[str, TodoItem]) -> None:
        if len(items) > self._max_items:
            raise InvalidArguments(f"the list would have {len(items)} items; at most {self._max_items} fit")
        self._items = items

    def as_text(self) -> str:
        """The open items, for the summary of a conversation."""
        marks = {"pending": "[ ]", "in_progress": "[>]"}
        return "\n".join(f"{marks[i.status]} {i.id}: {i.content}" for i in self.items() if i.status in marks)


def restore(todos: Todos, messages: Sequence[StoredMessage]) -> None:
    """Restore the list from the last result of the tool in a conversation."""
    for stored in reversed(messages):
        message = stored.message
        if message["role"] != "tool" or message.get("name") != "todo":
            continue
        try:
            found = json.loads(message["content"])["todos"]
            items = [TodoItem(each["id"], each["content"], each["status"]) for each in found]
        except (ValueError, LookupError, TypeError):
            continue  # an error, or truncated
        todos.replace(items)
        return

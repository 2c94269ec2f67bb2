"""The state of an agent, for the tools that need one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..agent.todos import Todos
from ..types import CancelToken, JsonDict

_FITS_CHARS = 2_000


@dataclass(slots=True)
class FakeAgent:
    """For agent-level tools such as `todo` without an agent loop: `run_tool_calls(calls, agent=FakeAgent())`.

    `notes` are what `memory` keeps, `said` the messages that `session_search` finds, `children` the answers that `delegate_task`
    gets in turn; `delegated` has the tasks that were delegated.
    """

    todos: Todos = field(default_factory=Todos)
    notes: dict[str, list[str]] = field(default_factory=lambda: {"memory": [], "user": []})
    said: list[str] = field(default_factory=list)
    children: list[str] = field(default_factory=list)
    delegated: list[JsonDict] = field(default_factory=list)
    label: str = ""

    def remember(self, store: str, action: str, *texts: str) -> tuple[Sequence[str], int, int]:
        entries = self.notes[store]
        if action == "add":
            entries.append(texts[0])
        else:
            place = next(place for place, entry in enumerate(entries) if texts[0] in entry)
            entries[place : place + 1] = texts[1:]
        return list(entries), sum(map(len, entries)), _FITS_CHARS

    def search_sessions(self, query: str, limit: int) -> Sequence[Mapping[str, Any]]:
        return [self._message(place) for place, text in enumerate(self.said) if query.lower() in text.lower()][:limit]

    def recent_sessions(self, limit: int, offset: int) -> Sequence[Mapping[str, Any]]:
        return [{"session": "fake", "title": self.said[0]}][offset : offset + limit] if self.said else []

    def messages_of(self, session: str, limit: int, offset: int) -> Sequence[Mapping[str, Any]]:
        places = range(len(self.said))[offset : offset + limit] if session == "fake" else range(0)
        return [self._message(place) for place in places]

    def messages_around(self, message_id: int, span: int) -> Sequence[Mapping[str, Any]]:
        places = range(max(0, message_id - span), min(len(self.said), message_id + span + 1))
        return [self._message(place) for place in places]

    async def delegate(
        self,
        tasks: Sequence[Mapping[str, Any]],
        cancel: CancelToken,  # noqa: ARG002  an AgentState's signature
        tell: Callable[[str], object],  # noqa: ARG002  the same
    ) -> Sequence[Mapping[str, Any]]:
        self.delegated += [dict(task) for task in tasks]
        answers = [self.children.pop(0) if self.children else "done" for _ in tasks]
        return [{"task": place, "status": "completed", "summary": each} for place, each in enumerate(answers)]

    def manage_children(
        self, action: str, *, tasks: Sequence[Mapping[str, Any]] = (), child: str = "", message: str = ""
    ) -> Sequence[Mapping[str, Any]]:
        self.delegated += [dict(task) for task in tasks]
        return [
            {"child": child or "child-1", "status": "cancelled" if action == "stop" else "running", "doing": message}
        ]

    def _message(self, place: int) -> JsonDict:
        return {"session": "fake", "message_id": place, "role": "user", "excerpt": self.said[place]}

"""The stand-ins: a model with scripted replies, people who approve and answer, the state of an agent, results in memory."""

from __future__ import annotations

import copy
import itertools
import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..agent.memory import Todos
from ..errors import ResultNotFound
from ..protocols import Action, Answer, ApprovalRequest, Decision, ModelReply, StoredResult
from ..types import CancelToken, JsonDict, ToolContext

Messages = Sequence[Mapping[str, Any]]
# A fixed reply, or one computed from the conversation and the offered tools.
Reply = ModelReply | Callable[[Messages, Messages], ModelReply]
_FITS_CHARS = 2_000


def call(name: str, call_id: str | None = None, /, **arguments: Any) -> JsonDict:
    """A tool call in OpenAI's format. All keyword arguments are arguments of the tool, also `id` and `name`."""
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": call_id or f"call_{uuid.uuid4().hex[:12]}", "type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class Sent:
    """A copy of what the model was sent for one reply."""

    messages: list[JsonDict]
    tools: list[JsonDict]


class ScriptedModel:
    """Returns the script's replies in turn. `sent` has what it was sent for each."""

    def __init__(self, script: Iterable[Reply]) -> None:
        self._script = list(script)
        self.sent: list[Sent] = []

    def reply(self, messages: Messages, tools: Messages) -> ModelReply:
        """The next reply. Raises AssertionError if the caller runs more turns than the script has."""
        position = len(self.sent)
        messages_then, tools_then = ([dict(copy.deepcopy(each)) for each in part] for part in (messages, tools))
        self.sent.append(Sent(messages_then, tools_then))
        if position >= len(self._script):
            over = f"it has {len(self._script)} replies and was asked for reply {position + 1}"
            last = repr(dict(messages[-1])) if messages else "none"
            last = last if len(last) <= 300 else last[:299] + "…"
            raise AssertionError(f"the script is over: {over}; the last message was {last}")
        step = self._script[position]
        return step(messages, tools) if callable(step) else copy.deepcopy(step)

    @property
    def remaining(self) -> int:
        """How many replies were not used."""
        return max(0, len(self._script) - len(self.sent))


class MemoryResultStore:
    """A `ResultStore` in a dictionary. Ids are consecutive, so that a test can name them."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self._numbers = itertools.count(1)

    def put(self, tool: str, text: str) -> StoredResult:
        result_id = f"r_{next(self._numbers):016x}"
        self.texts[result_id] = text
        return StoredResult(result_id, tool, len(text), text.count("\n") + 1)

    def writer(self, tool: str) -> MemoryResultWriter:
        return MemoryResultWriter(self, tool)

    def get(self, result_id: str) -> str:
        try:
            return self.texts[result_id]
        except KeyError:
            raise ResultNotFound(f"no result {result_id!r}; known: {', '.join(self.texts) or 'none'}") from None


class MemoryResultWriter:
    def __init__(self, store: MemoryResultStore, tool: str) -> None:
        self._store, self._tool = store, tool
        self._pieces: list[str] = []

    def write(self, text: str) -> None:
        self._pieces.append(text)

    def finish(self) -> StoredResult:
        return self._store.put(self._tool, "".join(self._pieces))

    def discard(self) -> None:
        self._pieces.clear()


class RecordingApprover:
    """Returns the decisions in turn, and denies when they are used up. `requests` has what it was asked. A decision may be an
    `Answer`, with its author and scope, or None, which passes the request on."""

    def __init__(self, decisions: Iterable[Decision | Answer | None] = ()) -> None:
        self._decisions = list(decisions)
        self.requests: list[ApprovalRequest] = []

    def decide(self, request: ApprovalRequest) -> Decision | Answer | None:
        self.requests.append(request)
        return self._decisions.pop(0) if self._decisions else Decision.DENY


class OpenGate:
    """Allows everything, and records it in `actions`."""

    def __init__(self) -> None:
        self.actions: list[Action] = []

    def review(self, actions: Sequence[Action], context: ToolContext) -> None:  # noqa: ARG002  a Gate's signature
        self.actions.extend(actions)


class ScriptedPerson:
    """Returns the answers in turn; None, or no answer left, means that nobody is there. `asked` has the questions."""

    def __init__(self, answers: Iterable[str | None] = ()) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    def ask(self, question: str, choices: Sequence[str]) -> str | None:
        self.asked.append((question, tuple(choices)))
        return self._answers.pop(0) if self._answers else None


@dataclass(slots=True)
class FakeAgent:
    """For agent-level tools such as `todo` without an agent loop: `run_tool_calls(calls, agent=FakeAgent())`. `notes` are what
    `memory` keeps, `said` the messages that `session_search` finds, `children` the answers that `delegate_task` gets in turn;
    `delegated` has the tasks that were delegated."""

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
        status = "cancelled" if action == "stop" else "running"
        return [{"child": child or "child-1", "status": status, "doing": message}]

    def _message(self, place: int) -> JsonDict:
        return {"session": "fake", "message_id": place, "role": "user", "excerpt": self.said[place]}

"""Child agents: each with its own conversation, tools, environment and budget; their number and depth are bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ..errors import HandrailError, ToolFailed
from ..types import CancelToken, JsonDict
from .events import End, Event, Notice, ToolStarted, TurnEnded, Usage

MAX_DEPTH = 2
MAX_AT_ONCE = 3
MAX_SUMMARY_CHARS = 12_000
_CHILD_MODEL_CALLS = 50
_LABEL_CHARS = 30  # so that what the child does fits on the same line
_INSTRUCTIONS = (
    "You are a child agent: another agent gave you this task, and reads only your last message. Do it alone, then say what you "
    "found or did, with exact names and paths, what failed, and what is left. Nobody can answer questions."
)
# A child has no user to ask and no memory of its own.
_WITHOUT = ("clarify", "memory", "messaging", "cronjob")


class Lineage(NamedTuple):
    """Where an agent comes from: its parent's session, how deep it is, and the label under which the user sees it."""

    parent: str | None = None
    depth: int = 0
    label: str = ""


class Child(Protocol):
    lineage: Lineage
    inbox: list[str]

    @property
    def session_id(self) -> str: ...
    def interrupt(self, reason: str = ...) -> None: ...
    async def arun(self, text: str, listener: Callable[[Event], object] | None = None) -> TurnEnded: ...
    def close(self) -> None: ...


class Parent(Protocol):
    lineage: Lineage
    listener: Callable[[Event], object]

    @property
    def session_id(self) -> str: ...
    def child(
        self, goal: str, *, toolsets: Sequence[str] | None, without: Sequence[str], instructions: str, model_calls: int
    ) -> Child: ...
    def charge(self, usage: Usage) -> None: ...
    def hook(self, name: str, **payload: Any) -> None: ...


async def delegate(
    parent: Parent, tasks: Sequence[Mapping[str, Any]], cancel: CancelToken, notify: Callable[[str], object]
) -> list[JsonDict]:
    if parent.lineage.depth >= MAX_DEPTH:
        raise ToolFailed(
            f"a child at depth {parent.lineage.depth} cannot have children of its own; do the task yourself"
        )
    slots = asyncio.Semaphore(MAX_AT_ONCE)

    async def one(number: int, task: Mapping[str, Any]) -> JsonDict:
        async with slots:
            return await run_child(parent, number, task, cancel, notify)

    return list(await asyncio.gather(*(one(number, task) for number, task in enumerate(tasks))))


async def run_child(
    parent: Parent,
    number: int,
    task: Mapping[str, Any],
    cancel: CancelToken,
    notify: Callable[[str], object],
    started: Callable[[Child], object] = lambda _: None,
) -> JsonDict:
    """Have a child do one task. `started` gets the child; what comes into its inbox later is one more turn of it."""
    goal = str(task["goal"])
    if cancel.cancelled:
        return {"task": number, "status": "cancelled", "summary": ""}
    try:
        child = parent.child(
            goal,
            toolsets=task.get("toolsets"),
            without=_WITHOUT,
            instructions=_INSTRUCTIONS,
            model_calls=_CHILD_MODEL_CALLS,
        )
    except HandrailError as error:
        return {"task": number, "status": "failed", "summary": str(error)}
    about = {"session_id": parent.session_id, "child_session_id": child.session_id, "goal": goal}
    forget = cancel.on_cancel(lambda: child.interrupt(cancel.reason))
    started(child)
    try:
        await asyncio.to_thread(parent.hook, "subagent_start", **about)
        context = str(task.get("context") or "")
        ended = await child.arun(f"{goal}\n\n{context}".strip(), _listener(parent, child, notify))
        parent.charge(ended.usage)
        while child.inbox and ended.end is End.ANSWERED and not cancel.cancelled:
            ended = await child.arun(child.inbox.pop(0), _listener(parent, child, notify))
            parent.charge(ended.usage)
    finally:
        forget()
        await asyncio.to_thread(child.close)
    answer = _result(number, child.session_id, ended)
    outcome = {"status": answer["status"], "summary": answer["summary"]}
    await asyncio.to_thread(parent.hook, "subagent_stop", **about, **outcome)
    return answer


def _listener(parent: Parent, child: Child, notify: Callable[[str], object]) -> Callable[[Event], object]:
    """What the user sees of a child: its calls and notices, not its text."""
    label = child.lineage.label

    def listen(event: Event) -> None:
        if isinstance(event, Notice):
            parent.listener(Notice(f"[{label}] {event.text}"))
        elif isinstance(event, ToolStarted):
            about = next((value for value in event.arguments.values() if isinstance(value, str)), "")
            notify(f"[{label[:_LABEL_CHARS]}] {event.emoji} {event.tool} {' '.join(about.split())}".rstrip())

    return listen


def _result(number: int, session_id: str, ended: TurnEnded) -> JsonDict:
    status = {End.ANSWERED: "completed", End.INTERRUPTED: "cancelled", End.TIME: "timeout"}.get(ended.end, "failed")
    summary = ended.answer[:MAX_SUMMARY_CHARS]
    if ended.reason:
        summary = f"{summary}\n[{ended.reason}]".strip()
    return {
        "task": number,
        "status": status,
        "summary": summary,
        "session_id": session_id,
        "model_calls": ended.model_calls,
        "tokens": ended.usage.input_tokens + ended.usage.output_tokens,
    }

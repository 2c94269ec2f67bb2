"""Child agents: each with its own conversation, tools, environment and budget; their number and depth are bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import HandrailError, ToolFailed
from ..types import CancelToken, JsonDict
from .events import End, Event, Notice, ToolStarted, TurnEnded

if TYPE_CHECKING:
    from .agent import Agent

MAX_DEPTH = 2
MAX_AT_ONCE = 3
MAX_SUMMARY_CHARS = 12_000
_CHILD_MODEL_CALLS = 50
_LABEL_CHARS = 30  # what it does matters more, and both are to fit into a line
_INSTRUCTIONS = (
    "You are a child agent: another agent gave you this task, and reads only your last message. Do it alone, then say what you "
    "found or did, with exact names and paths, what failed, and what is left. Nobody can answer questions."
)
# A child has no person, no memory of its own, and hands nothing on below the last level.
_NEVER = ("clarify", "memory", "messaging", "cronjob")


async def delegate(
    parent: Agent, tasks: Sequence[Mapping[str, Any]], cancel: CancelToken, tell: Callable[[str], object]
) -> list[JsonDict]:
    if parent.depth >= MAX_DEPTH:
        raise ToolFailed(f"a child at depth {parent.depth} cannot have children of its own; do the task yourself")
    places = asyncio.Semaphore(MAX_AT_ONCE)

    async def one(number: int, task: Mapping[str, Any]) -> JsonDict:
        async with places:
            return await _run(parent, number, task, cancel, tell)

    return list(await asyncio.gather(*(one(number, task) for number, task in enumerate(tasks))))


async def _run(
    parent: Agent, number: int, task: Mapping[str, Any], cancel: CancelToken, tell: Callable[[str], object]
) -> JsonDict:
    goal = str(task["goal"])
    if cancel.cancelled:
        return {"task": number, "status": "cancelled", "summary": ""}
    try:
        child = parent.child(
            goal,
            toolsets=task.get("toolsets"),
            never=_NEVER,
            instructions=_INSTRUCTIONS,
            model_calls=_CHILD_MODEL_CALLS,
        )
    except HandrailError as error:
        return {"task": number, "status": "failed", "summary": str(error)}
    about = {"session_id": parent.session_id, "child_session_id": child.session_id, "goal": goal}
    forget = cancel.on_cancel(lambda: child.interrupt(cancel.reason))
    try:
        await asyncio.to_thread(parent.hook, "subagent_start", **about)
        context = str(task.get("context") or "")
        ended = await child.arun(f"{goal}\n\n{context}".strip(), _listener(parent, child, tell))
        parent.loop.charge(ended.usage)
    finally:
        forget()
        await asyncio.to_thread(child.close)
    answer = _told(number, child.session_id, ended)
    told = {"status": answer["status"], "summary": answer["summary"]}
    await asyncio.to_thread(parent.hook, "subagent_stop", **about, **told)
    return answer


def _listener(parent: Agent, child: Agent, tell: Callable[[str], object]) -> Callable[[Event], object]:
    """What the person hears of a child: what it calls, and what it waits for; not each of its words."""

    def listen(event: Event) -> None:
        if isinstance(event, Notice):
            parent.listener(Notice(f"[{child.label}] {event.text}"))
        elif isinstance(event, ToolStarted):
            about = next((value for value in event.arguments.values() if isinstance(value, str)), "")
            tell(f"[{child.label[:_LABEL_CHARS]}] {event.emoji} {event.tool} {' '.join(about.split())}".rstrip())

    return listen


def _told(number: int, session_id: str, ended: TurnEnded) -> JsonDict:
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

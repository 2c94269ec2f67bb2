"""Child agents: each with its own conversation, tools, environment and budget; their number and depth are bounded."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any, NamedTuple, Protocol

from ..base.suggest import did_you_mean
from ..base.workers import pool, run_async
from ..errors import HandrailError, InvalidArguments, ToolFailed
from ..types import CancelToken, JsonDict
from .events import End, Event, Notice, ToolStarted, TurnEnded, Usage

MAX_DEPTH = 2
MAX_AT_ONCE = 3
MAX_SUMMARY_CHARS = 12_000
CHILD_MODEL_CALLS = 50
_LABEL_CHARS = 30  # so that what the child does fits on the same line
INSTRUCTIONS = (
    "You are a child agent: another agent gave you this task, and reads only your last message. Do it alone, then say what you "
    "found or did, with exact names and paths, what failed, and what is left. Nobody can answer questions."
)
# A child has no user to ask and no memory of its own.
WITHOUT = ("clarify", "memory", "messaging", "cronjob")
_CLOSE_SECONDS = 5.0


class Lineage(NamedTuple):
    """Where an agent comes from: its parent's session, how deep it is, and the label under which the user sees it."""

    parent: str | None = None
    depth: int = 0
    label: str = ""


class Agent(Protocol):
    """What is used of an agent that has children, and of a child."""

    lineage: Lineage
    listener: Callable[[Event], object]
    inbox: list[str]

    @property
    def session_id(self) -> str: ...
    def child(self, goal: str, toolsets: Sequence[str] | None) -> "Agent": ...
    def charge(self, usage: Usage) -> None: ...
    def hook(self, name: str, **payload: Any) -> object: ...
    def interrupt(self, reason: str = ...) -> None: ...
    async def arun(self, text: str, listener: Callable[[Event], object] | None = None) -> TurnEnded: ...
    def close(self) -> None: ...


async def delegate(
    parent: Agent, tasks: Sequence[Mapping[str, Any]], cancel: CancelToken, notify: Callable[[str], object]
) -> list[JsonDict]:
    if (depth := parent.lineage.depth) >= MAX_DEPTH:
        raise ToolFailed(f"a child at depth {depth} cannot have children of its own; do the task yourself")
    slots = asyncio.Semaphore(MAX_AT_ONCE)

    async def one(number: int, task: Mapping[str, Any]) -> JsonDict:
        async with slots:
            return await run_child(parent, number, task, cancel, notify)

    return list(await asyncio.gather(*(one(number, task) for number, task in enumerate(tasks))))


async def run_child(
    parent: Agent,
    number: int,
    task: Mapping[str, Any],
    cancel: CancelToken,
    notify: Callable[[str], object],
    inbox: list[str] | None = None,
) -> JsonDict:
    """Have a child do one task. What comes into its `inbox` too late to be heard is one more turn of it."""
    goal = str(task["goal"])
    if cancel.cancelled:
        return {"task": number, "status": "cancelled", "summary": ""}
    try:
        child = parent.child(goal, task.get("toolsets"))
    except HandrailError as error:
        return {"task": number, "status": "failed", "summary": str(error)}
    about = {"session_id": parent.session_id, "child_session_id": child.session_id, "goal": goal}
    forget = cancel.on_cancel(lambda: child.interrupt(cancel.reason))
    child.inbox = child.inbox if inbox is None else inbox
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


def _listener(parent: Agent, child: Agent, notify: Callable[[str], object]) -> Callable[[Event], object]:
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


class BackgroundChild:
    """One child, on a thread of its own."""

    def __init__(self, parent: Agent, name: str, task: Mapping[str, Any]) -> None:
        self.name, self.goal, self.cancel, self.is_reported = name, str(task["goal"]), CancelToken(), False
        self.inbox: list[str] = []  # the child's, which may be told something before it is there
        self._began, self._doing = time.monotonic(), ""
        work = run_child(parent, 0, task, self.cancel, self._note, self.inbox)
        self.work: Future[JsonDict] = pool.submit(run_async, work)

    def _note(self, text: str) -> None:
        self._doing = text

    def described(self) -> JsonDict:
        """What it does, or how it ended."""
        about: JsonDict = {"child": self.name, "goal": self.goal}
        if not self.work.done():
            seconds = round(time.monotonic() - self._began, 1)
            return {**about, "status": "running", "doing": self._doing, "seconds": seconds}
        if error := self.work.exception():
            return {**about, "status": "failed", "summary": f"{type(error).__name__}: {error}"}
        return {**about, **{key: value for key, value in self.work.result().items() if key != "task"}}


class BackgroundChildren:
    """The children of one agent that work while it goes on: started, listed, told something more, stopped."""

    def __init__(self, parent: Agent) -> None:
        self._parent = parent
        self._children: dict[str, BackgroundChild] = {}

    def manage(self, action: str, *, tasks: Sequence[Mapping[str, Any]], child: str, message: str) -> list[JsonDict]:
        """What `delegate_task` does besides waiting for children. Raises InvalidArguments, ToolFailed."""
        if action == "start":
            return [each.described() for each in self._start(tasks)]
        if action == "list":
            return [each.described() for each in self._children.values()]
        if child not in self._children:
            raise InvalidArguments(f"there is no child {child!r}; {did_you_mean(child, self._children)}")
        chosen = self._children[child]
        if action == "stop":
            chosen.cancel.cancel("stopped by the agent that started it")
            wait([chosen.work], timeout=_CLOSE_SECONDS)
        elif not message.strip():
            raise InvalidArguments("steer needs a message")
        elif chosen.work.done():
            raise ToolFailed(f"{child} is not running; start another one")
        else:
            chosen.inbox.append(message)
        return [chosen.described()]

    def _start(self, tasks: Sequence[Mapping[str, Any]]) -> list[BackgroundChild]:
        running = sum(not each.work.done() for each in self._children.values())
        if running + len(tasks) > MAX_AT_ONCE:
            most = f"at most {MAX_AT_ONCE} do at a time"
            raise ToolFailed(f"{running} children run already, and {most}; stop one, or wait")
        made = []
        for task in tasks:
            made.append(BackgroundChild(self._parent, f"child-{len(self._children) + 1}", task))
            self._children[made[-1].name] = made[-1]
        return made

    def notices(self) -> list[str]:
        """What ended since the last time."""
        ended = [each for each in self._children.values() if each.work.done() and not each.is_reported]
        for each in ended:
            each.is_reported = True
        results = [each.described() for each in ended]
        return [f"{how['child']} ({how['goal'][:80]}) has ended: {how['status']}. {how['summary']}" for how in results]

    def close(self) -> None:
        for each in self._children.values():
            each.cancel.cancel("the session is over")
        wait([each.work for each in self._children.values()], timeout=_CLOSE_SECONDS)

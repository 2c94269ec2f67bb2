"""Run the tool calls of one answer: only those that this agent may make, with events as they run, and a stop for loops."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from ..app import Handrail
from ..base.suggest import did_you_mean
from ..core.outcome import error_of, error_outcome, parsed
from ..errors import UnknownTool
from ..protocols import ApprovalRequest
from ..runtime.provider_formats import tool_message
from ..store.sessions import StoredCall
from ..types import NO_CALLER, AgentState, Caller, CancelToken, FileChange, JsonDict, Progress
from .events import Event, Notice, ToolEnded, ToolProgress, ToolStarted, ToolWaiting
from .telemetry import TOOL_ARGUMENTS, TOOL_RESULT, Span, Telemetry

Listener = Callable[[Event], object]
Run = Callable[..., Awaitable[list[JsonDict]]]
# A call that fails so often with the same arguments: the model is warned, then the turn ends.
WARN_AFTER = 3
STOP_AFTER = 8


class ToolCalls:
    """The tool calls of one session. `toolsets` are the enabled ones (None: all) and the disabled ones. `play` answers calls
    instead of the tools, as `Batches.run` would."""

    def __init__(
        self,
        app: Handrail,
        session: str,
        *,
        state: AgentState,
        toolsets: tuple[Sequence[str] | None, Sequence[str]],
        telemetry: Telemetry,
        play: Run | None = None,
        caller: Caller = NO_CALLER,
    ) -> None:
        self.app, self._session, self._state = app, session, state
        self.toolsets, self.telemetry, self.caller = toolsets, telemetry, caller
        self._play = play
        self.at_hand: Sequence[str] | None = None  # toolsets; the tools of others have to be searched for
        self._failures: Counter[tuple[str, str]] = Counter()  # of each call, since it last succeeded in this turn

    def tools(self, context_tokens: int | None = None) -> list[JsonDict]:
        """The tools that a model with such a context window is shown now; None means that all fit."""
        enabled, disabled = self.toolsets
        room = None if context_tokens is None else self.app.room_for_tools(context_tokens)
        return self.app.definitions.list(enabled, list(disabled), quiet=True, max_chars=room, at_hand=self.at_hand)

    def start_turn(self) -> None:
        self._failures.clear()

    async def run(
        self, calls: Sequence[JsonDict], stop: CancelToken, listener: Listener, *, seconds: float | None = None
    ) -> tuple[list[JsonDict], list[StoredCall]]:
        """The tool messages, in the order of the calls, and the record of each call. `seconds` limits all of them together."""
        running = _RunningCalls(self, calls, listener)
        enabled, disabled = self.toolsets
        # Also those that the model calls from code, or has to search for.
        mine = self.app.definitions.names(enabled, list(disabled))
        answers = {} if enabled is None and not disabled else _refused(calls, mine)
        if allowed := [call for call in calls if call["id"] not in answers]:
            limit = self._limit(allowed) if seconds is None else min(seconds, self._limit(allowed))
            ran = await self._run(allowed, mine, stop, running, limit)
            answers |= {message["tool_call_id"]: message for message in ran}
        for call_id, message in answers.items():
            running.done(call_id, message["content"])  # refused or given up; the others are done already
        guarded = [self._guarded(call["function"], answers[call["id"]], stop, listener) for call in calls]
        return guarded, running.ended

    async def _run(
        self, calls: list[JsonDict], mine: frozenset[str], stop: CancelToken, running: "_RunningCalls", limit: float
    ) -> list[JsonDict]:
        loop = asyncio.get_running_loop()

        def progress(update: Progress) -> None:
            event = ToolProgress(update.tool_call_id, update.tool, update.message, update.fraction)
            loop.call_soon_threadsafe(running.listener, event)

        return await (self._play or self.app.batches.run)(
            calls,
            timeout=limit,
            task_id=self._session,
            session_id=self._session,
            cancel=stop,
            on_progress=progress,
            on_start=running.start,
            on_done=running.done,
            agent=self._state,
            enabled_tools=mine,
            caller=self.caller._replace(on_question=running.ask, on_answer=running.answered),
        )

    def _limit(self, calls: Sequence[JsonDict]) -> float:
        """A tool with its own timeout is not cut short by the timeout for all calls together."""
        registry = self.app.runtime.registry
        entries = (registry.get_entry(call["function"]["name"]) for call in calls)
        longest = max((entry.timeout or 0.0 for entry in entries if entry is not None), default=0.0)
        return max(self.app.config.calls.batch_timeout, longest)

    def _guarded(self, function: JsonDict, result: JsonDict, stop: CancelToken, listener: Listener) -> JsonDict:
        """The result, with a warning to the model if it repeats a failing call."""
        name, failure = function["name"], error_of(result["content"])
        call = (name, function["arguments"])
        self._failures[call] = times = self._failures[call] + 1 if failure is not None else 0
        if times >= STOP_AFTER:
            stop.cancel(f"{name} failed {times} times with the same arguments")
        if failure is None or times < WARN_AFTER:
            return result
        listener(Notice(f"{name} has failed {times} times with the same arguments"))
        hint = f"[This call has now failed {times} times with the same arguments. Do something else, or say what you need.]"
        return {**result, "content": json.dumps({**failure, "hint": hint}, ensure_ascii=False)}


def _refused(calls: Sequence[JsonDict], mine: frozenset[str]) -> dict[str, JsonDict]:
    """The results of calls to tools that this model may not use."""
    names = {call["id"]: call["function"]["name"] for call in calls}
    why = {name: f"{name!r} is not one of your tools; {did_you_mean(name, mine)}" for name in {*names.values()} - mine}
    errors = {name: error_outcome(UnknownTool(reason)) for name, reason in why.items()}
    return {call_id: tool_message(call_id, name, errors[name]) for call_id, name in names.items() if name in errors}


class _RunningCalls:
    """The calls of one answer while they run: sends an event per start and end, and keeps the record of each call."""

    def __init__(self, tool_calls: ToolCalls, calls: Sequence[JsonDict], listener: Listener) -> None:
        self._tool_calls, self.listener = tool_calls, listener
        self.ended: list[StoredCall] = []
        self._waiting = {call["id"]: call["function"] for call in calls}
        self._running: dict[str, tuple[JsonDict, float, Span]] = {}
        self._waited: dict[str, float] = {}  # seconds for answers
        self._asked: dict[str, float] = {}  # since when a question is open

    def start(self, call_id: str) -> None:
        """A call starts now: calls that change the same thing run one after the other."""
        function = self._waiting.pop(call_id, None)
        if function is None:  # already given up
            return
        name = function["name"]
        self._running[call_id] = function, time.time(), self._tool_calls.telemetry.tool(name, call_id)
        emoji = self._tool_calls.app.runtime.registry.get_emoji(name)
        self.listener(ToolStarted(call_id, name, arguments_of(function), emoji))

    def ask(self, request: ApprovalRequest) -> None:
        """A call waits for an answer."""
        self._asked[request.tool_call_id] = time.time()
        self.listener(ToolWaiting(request.tool_call_id, request.tool, request))
        if self._tool_calls.caller.on_question is not None:
            self._tool_calls.caller.on_question(request)

    def answered(self, request: ApprovalRequest, seconds: float) -> None:
        self._asked.pop(request.tool_call_id, None)
        self._waited[request.tool_call_id] = self._waited.get(request.tool_call_id, 0.0) + seconds

    def done(self, call_id: str, outcome: Any, changes: Sequence[FileChange] = ()) -> None:
        """A call has ended, even if it never started. Each call is reported once."""
        self.start(call_id)
        if call_id not in self._running:
            return
        function, began, span = self._running.pop(call_id)
        failure = error_of(outcome)
        name, now = function["name"], time.time()  # a question that is still open was cancelled with its call
        seconds, waited = now - began, self._waited.get(call_id, 0.0) + now - self._asked.pop(call_id, now)
        kind = str(failure.get("error_type", "tool_failed")) if failure else ""
        self.ended.append(StoredCall(name, call_id, arguments_of(function), began, seconds, kind, waited))
        span.end({TOOL_ARGUMENTS: function["arguments"], TOOL_RESULT: outcome}, error=kind)
        content = outcome.get("content") if isinstance(outcome, dict) else outcome
        text, parts = (outcome, ()) if isinstance(outcome, str) else ("", tuple(content or ()))
        self.listener(ToolEnded(call_id, name, text, kind, seconds, tuple(changes), waited, parts))


def ignore(event: Event) -> None:
    """The listener of a caller that wants no events."""


def arguments_of(function: JsonDict) -> JsonDict:
    """The arguments of a call as an object, also when the model wrote something else."""
    found = parsed(function["arguments"])
    return found if isinstance(found, dict) else {"arguments": function["arguments"]}

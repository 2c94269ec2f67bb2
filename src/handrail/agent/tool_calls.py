"""Run the calls of one answer: those that this agent may make, told as they run, watched for circles."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..base.suggest import did_you_mean
from ..core.outcome import error_of, error_outcome
from ..errors import UnknownTool
from ..runtime.tool_calls import tool_message
from ..store.sessions import StoredCall
from ..types import CancelToken, JsonDict, Progress
from .events import Event, Notice, ToolEnded, ToolProgress, ToolStarted
from .loop_detection import STOP_AFTER, WARN_AFTER, LoopGuard, with_warning
from .telemetry import TOOL_ARGUMENTS, TOOL_RESULT, Span, Telemetry

if TYPE_CHECKING:
    from ..app import Handrail
    from ..types import AgentState

Listener = Callable[[Event], object]
Run = Callable[..., Awaitable[list[JsonDict]]]


class Calling:
    """The calls of one session. `toolsets` are what is enabled (None: all) and what is not. `play` answers calls in place of
    the tools, as `Batches.run` would."""

    def __init__(
        self,
        handrail: Handrail,
        session: str,
        *,
        state: AgentState,
        toolsets: tuple[Sequence[str] | None, Sequence[str]],
        telemetry: Telemetry,
        play: Run | None = None,
    ) -> None:
        self._handrail, self._session, self._state = handrail, session, state
        self.toolsets, self.telemetry = toolsets, telemetry
        self._play = play
        self._guard = LoopGuard()

    def tools(self, context_tokens: int | None = None) -> list[JsonDict]:
        """What a model with so large a window is shown now; None is one that has room for all."""
        enabled, disabled = self.toolsets
        room = None if context_tokens is None else self._handrail.room_for_tools(context_tokens)
        return self._handrail.definitions.list(enabled, list(disabled), quiet=True, format="openai", max_chars=room)

    def _names(self) -> frozenset[str]:
        """What the model may call: also from code, and what it has to search for."""
        enabled, disabled = self.toolsets
        return self._handrail.definitions.names(enabled, list(disabled))

    def start_turn(self) -> None:
        self._guard = LoopGuard()

    async def run(
        self, calls: Sequence[JsonDict], stop: CancelToken, listener: Listener, *, seconds: float | None = None
    ) -> tuple[list[JsonDict], list[StoredCall]]:
        """The tool messages, in the calls' order, and what each call took. `seconds` is what they may take together."""
        told = _Told(self, calls, listener)
        mine = self._names()
        enabled, disabled = self.toolsets
        answers = {} if enabled is None and not disabled else _refused(calls, mine)
        allowed = [call for call in calls if call["id"] not in answers]
        if allowed:
            limit = self._limit(allowed) if seconds is None else min(seconds, self._limit(allowed))
            ran = await self._run(allowed, mine, stop, told, limit)
            answers |= {message["tool_call_id"]: message for message in ran}
        for call_id, message in answers.items():
            told.done(call_id, message["content"])  # of what was refused, or given up: the others have been told
        guarded = [self._guarded(call["function"], answers[call["id"]], stop, listener) for call in calls]
        return guarded, told.ended

    async def _run(
        self, calls: list[JsonDict], mine: frozenset[str], stop: CancelToken, told: _Told, limit: float
    ) -> list[JsonDict]:
        loop = asyncio.get_running_loop()

        def progress(news: Progress) -> None:
            event = ToolProgress(news.tool_call_id, news.tool, news.message, news.fraction)
            loop.call_soon_threadsafe(told.listener, event)

        return await (self._play or self._handrail.batches.run)(
            calls,
            timeout=limit,
            task_id=self._session,
            session_id=self._session,
            cancel=stop,
            on_progress=progress,
            on_start=told.start,
            on_done=told.done,
            agent=self._state,
            enabled_tools=mine,
        )

    def _limit(self, calls: Sequence[JsonDict]) -> float:
        """A tool that says how long it may take is not cut short by the limit for all calls together."""
        registry = self._handrail.runtime.registry
        entries = (registry.get_entry(call["function"]["name"]) for call in calls)
        longest = max((entry.timeout or 0.0 for entry in entries if entry is not None), default=0.0)
        return max(self._handrail.config.calls.batch_timeout, longest)

    def _guarded(self, function: JsonDict, result: JsonDict, stop: CancelToken, listener: Listener) -> JsonDict:
        """The result, with a word to the model where it runs in circles."""
        failed = isinstance(result["content"], str) and error_of(result["content"]) is not None
        times = self._guard.note(function["name"], function["arguments"], failed=failed)
        if times >= STOP_AFTER:
            stop.cancel(f"{function['name']} failed {times} times with the same arguments")
        if times < WARN_AFTER:
            return result
        listener(Notice(f"{function['name']} has failed {times} times with the same arguments"))
        return with_warning(result, times)

    def emoji(self, tool: str) -> str:
        return self._handrail.runtime.registry.get_emoji(tool)


def _refused(calls: Sequence[JsonDict], mine: frozenset[str]) -> dict[str, JsonDict]:
    """The answers to calls of what this model may not use."""
    names = {call["id"]: call["function"]["name"] for call in calls}
    return {
        call_id: tool_message(
            call_id, name, error_outcome(UnknownTool(f"{name!r} is none of your tools; {did_you_mean(name, mine)}"))
        )
        for call_id, name in names.items()
        if name not in mine
    }


class _Told:
    """The calls of one answer while they run: each start and end is told, and what each took is kept."""

    def __init__(self, calling: Calling, calls: Sequence[JsonDict], listener: Listener) -> None:
        self._calling, self.listener = calling, listener
        self.ended: list[StoredCall] = []
        self._waiting = {call["id"]: call["function"] for call in calls}
        self._running: dict[str, tuple[JsonDict, float, Span]] = {}

    def start(self, call_id: str) -> None:
        """Its turn has come: calls that change the same thing run one after the other."""
        function = self._waiting.pop(call_id, None)
        if function is None:  # it was given up
            return
        name = function["name"]
        self._running[call_id] = function, time.time(), self._calling.telemetry.tool(name, call_id)
        self.listener(ToolStarted(call_id, name, arguments_of(function), self._calling.emoji(name)))

    def done(self, call_id: str, outcome: Any) -> None:
        """Also of a call whose turn never came. What was told once is not told again."""
        self.start(call_id)
        if call_id not in self._running:
            return
        function, began, span = self._running.pop(call_id)
        failure = error_of(outcome)
        name, seconds = function["name"], time.time() - began
        kind = str(failure.get("error_type", "tool_failed")) if failure else ""
        self.ended.append(StoredCall(name, call_id, arguments_of(function), began, seconds, kind))
        span.end({TOOL_ARGUMENTS: function["arguments"], TOOL_RESULT: outcome}, error=kind)
        self.listener(ToolEnded(call_id, name, outcome if isinstance(outcome, str) else "", kind, seconds))


def arguments_of(function: JsonDict) -> JsonDict:
    """The arguments of a call as an object, also when the model wrote something else."""
    try:
        found = json.loads(function["arguments"])
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"arguments": function["arguments"]}

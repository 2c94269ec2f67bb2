"""The loop: ask the model, run what it calls, give it the answers, until it has nothing more to call."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..async_bridge import run_async
from ..errors import ModelError
from ..store.sessions import StoredCall
from ..tools.outcome import error_of
from ..types import CancelToken, JsonDict, Progress
from .asking import Answer, Asking
from .conversation import Conversation, for_model
from .events import (
    End,
    Event,
    MessageEnded,
    Notice,
    TextDelta,
    ToolEnded,
    ToolProgress,
    ToolStarted,
    TurnEnded,
    Usage,
)
from .guard import STOP_AFTER, WARN_AFTER, LoopGuard, with_warning
from .repair import is_empty, repaired

if TYPE_CHECKING:
    from ..model_tools import Handrail
    from ..protocols import AgentState
    from ..store.sessions import SessionStore

Listener = Callable[[Event], object]
_EMPTY_ANSWERS = 2


class Budgets(NamedTuple):
    """What one turn of the person may take before the agent stops. None is no limit."""

    model_calls: int | None = 90
    tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None


DEFAULT_BUDGETS = Budgets()


class Interrupted(Exception):  # ends a turn, is no error
    """The person wants to speak."""


class Loop:
    """Turns of one conversation. One at a time; `interrupt` may come from any thread."""

    def __init__(  # noqa: PLR0913  each is a part that can be exchanged
        self,
        handrail: Handrail,
        asking: Asking,
        conversation: Conversation,
        store: SessionStore,
        *,
        state: AgentState,
        system: Callable[[], str],
        shorten: Callable[[Conversation, Asking, Sequence[JsonDict], Listener], Any] | None = None,
        toolsets: tuple[Sequence[str] | None, Sequence[str]] = (None, ()),
        budgets: Budgets = DEFAULT_BUDGETS,
    ) -> None:
        self.asking, self.conversation, self.budgets, self.toolsets = asking, conversation, budgets, toolsets
        self._handrail, self._store, self._state = handrail, store, state
        self._system, self._shorten = system, shorten
        self._guard = LoopGuard()
        self._stop = CancelToken()

    def run(self, text: str | list[JsonDict], listener: Listener = lambda event: None) -> TurnEnded:  # noqa: ARG005
        """One turn, for sync callers."""
        return run_async(self.arun(text, listener))

    def interrupt(self, reason: str = "the person interrupted") -> None:
        """Stop what runs: the model's answer, and every call. What was done is kept."""
        self._stop.cancel(reason)

    async def arun(self, text: str | list[JsonDict], listener: Listener = lambda event: None) -> TurnEnded:  # noqa: ARG005
        """One turn: from what the person says to the answer. It raises only for what is wrong with us."""
        self._stop = CancelToken()
        turn = _Turn(self.budgets)
        self.conversation.add([{"role": "user", "content": text}])
        try:
            ended = await self._until_answered(turn, listener)
        except Interrupted:
            self.conversation.complete("the person interrupted")
            ended = turn.ended(End.INTERRUPTED, self._stop.reason)
        except ModelError as error:
            ended = turn.ended(End.FAILED, str(error))
        except asyncio.CancelledError:
            self._stop.cancel("the caller went away")
            self.conversation.complete("the caller went away")
            raise
        listener(ended)
        return ended

    async def _until_answered(self, turn: _Turn, listener: Listener) -> TurnEnded:
        empty = 0
        while True:
            over = turn.over()
            if over is not None:
                return turn.ended(over, f"the budget for {over.value} is used up")
            tools = self._tools()
            if self._shorten is not None:
                await self._shorten(self.conversation, self.asking, tools, listener)
            answer = await self._answer(turn, tools, listener)
            names = {tool["function"]["name"] for tool in tools}
            message, problem = repaired(answer.message, tools=names, used_ids=self.conversation.call_ids())
            if problem:
                listener(Notice(f"{answer.model}: {problem}"))
            if is_empty(message):
                empty += 1
                if empty > _EMPTY_ANSWERS:
                    raise ModelError(f"{answer.model} answered {empty} times with nothing; try another model")
                listener(Notice(f"{answer.model} answered with nothing; asking again"))
                self._prompt("Your last answer was empty. Answer, or call a tool.")
                continue
            self.conversation.add(
                [message], usage=(answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.cost)
            )
            turn.note(answer.usage, message)
            listener(MessageEnded(message, answer.usage))
            if answer.cut_off:
                listener(Notice("the answer reached the longest that the model may write"))
            if not message.get("tool_calls"):
                return turn.ended(End.ANSWERED)
            await self._run_calls(message, listener)

    async def _answer(self, turn: _Turn, tools: list[JsonDict], listener: Listener) -> Answer:
        """The model's whole answer. Interrupted, what it had written is kept."""
        written: list[str] = []

        async def ask() -> Answer:
            messages = [{"role": "system", "content": self._system()}, *for_model(self.conversation.messages)]
            async for event in self.asking.ask(messages, tools):
                if isinstance(event, Answer):
                    return event
                if isinstance(event, TextDelta):
                    written.append(event.text)
                elif isinstance(event, Notice):
                    written.clear()
                listener(event)
            raise ModelError("the model gave no answer")

        task = asyncio.ensure_future(ask())
        loop = asyncio.get_running_loop()
        forget = self._stop.on_cancel(lambda: loop.call_soon_threadsafe(task.cancel))
        try:
            return await asyncio.wait_for(task, turn.seconds_left())
        except asyncio.CancelledError:
            if not self._stop.cancelled:
                raise
            if "".join(written).strip():
                self.conversation.add([{"role": "assistant", "content": "".join(written)}])
            raise Interrupted from None
        except TimeoutError:
            raise ModelError("the time for this turn is over") from None
        finally:
            forget()

    async def _run_calls(self, message: JsonDict, listener: Listener) -> None:
        calls = {call["id"]: call["function"] for call in message["tool_calls"]}
        started: dict[str, float] = {}
        for call_id, function in calls.items():
            started[call_id] = time.time()
            emoji = self._handrail.runtime.registry.get_emoji(function["name"])
            listener(ToolStarted(call_id, function["name"], _arguments(function), emoji))
        loop = asyncio.get_running_loop()

        def progress(news: Progress) -> None:
            event = ToolProgress(news.tool_call_id, news.tool, news.message, news.fraction)
            loop.call_soon_threadsafe(listener, event)

        def done(call_id: str, outcome: Any) -> None:
            function = calls[call_id]
            failure = error_of(outcome)
            seconds = time.time() - started[call_id]
            kind = str(failure.get("error_type", "tool_failed")) if failure else ""
            stored = StoredCall(function["name"], call_id, _arguments(function), started[call_id], seconds, kind)
            self._store.add_call(self.conversation.info.id, stored)
            listener(ToolEnded(call_id, function["name"], outcome if isinstance(outcome, str) else "", kind, seconds))

        session = self.conversation.info.id
        results = await self._handrail.batches.run(
            message["tool_calls"],
            task_id=session,
            session_id=session,
            cancel=self._stop,
            on_progress=progress,
            on_done=done,
            agent=self._state,
            enabled_tools=self._names_of_tools(),
        )
        self.conversation.add(self._guarded(results, calls, listener))
        if self._stop.cancelled:
            raise Interrupted

    def _guarded(self, results: list[JsonDict], calls: JsonDict, listener: Listener) -> list[JsonDict]:
        """The results, with a word to the model where it runs in circles."""
        kept = []
        for result in results:
            function = calls[result["tool_call_id"]]
            failed = isinstance(result["content"], str) and error_of(result["content"]) is not None
            times = self._guard.note(function["name"], function["arguments"], failed=failed)
            if times >= STOP_AFTER:
                self._stop.cancel(f"{function['name']} failed {times} times with the same arguments")
            if times >= WARN_AFTER:
                listener(Notice(f"{function['name']} has failed {times} times with the same arguments"))
                result = with_warning(result, times)
            kept.append(result)
        return kept

    def _prompt(self, text: str) -> None:
        """Say something to the model that the person did not."""
        self.conversation.add([{"role": "user", "content": text, "added_by": "handrail"}])

    def _tools(self) -> list[JsonDict]:
        enabled, disabled = self.toolsets
        room = self._handrail.room_for_tools(min(model.context_tokens for model in self.asking.models))
        return self._handrail.definitions.list(enabled, list(disabled), quiet=True, format="openai", max_chars=room)

    def _names_of_tools(self) -> frozenset[str]:
        """What the model may call: also from code, and what it has to search for."""
        enabled, disabled = self.toolsets
        return self._handrail.definitions.names(enabled, list(disabled))


class _Turn:
    """What one turn has taken so far."""

    def __init__(self, budgets: Budgets) -> None:
        self._budgets = budgets
        self._began = time.monotonic()
        self.usage, self.model_calls, self.answer = Usage(), 0, ""

    def note(self, usage: Usage, message: JsonDict) -> None:
        self.usage = self.usage.plus(usage)
        self.model_calls += 1
        self.answer = str(message.get("content") or "")

    def seconds_left(self) -> float | None:
        limit = self._budgets.seconds
        return None if limit is None else max(0.0, limit - (time.monotonic() - self._began))

    def over(self) -> End | None:
        budgets, used = self._budgets, self.usage
        if budgets.model_calls is not None and self.model_calls >= budgets.model_calls:
            return End.TURNS
        if budgets.tokens is not None and used.input_tokens + used.output_tokens >= budgets.tokens:
            return End.TOKENS
        if self.seconds_left() == 0:
            return End.TIME
        if budgets.cost is not None and (used.cost or 0) >= budgets.cost:
            return End.COST
        return None

    def ended(self, end: End, reason: str = "") -> TurnEnded:
        return TurnEnded(end, self.answer, self.usage, self.model_calls, reason)


def _arguments(function: JsonDict) -> JsonDict:
    try:
        found = json.loads(function["arguments"])
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"arguments": function["arguments"]}

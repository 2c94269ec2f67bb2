"""The loop: ask the model, run what it calls, give it the answers, until it has nothing more to call."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from ..base.async_bridge import run_async
from ..errors import ModelError, StoreError
from ..settings.model_providers import DEFAULT_PROVIDER
from ..store.sessions import StoredModelCall
from ..types import CancelToken, JsonDict
from .budgets import DEFAULT_BUDGETS, Budgets, Turn
from .compaction import Shortening, estimate
from .conversation import Conversation
from .events import End, MessageEnded, Notice, TextDelta, TurnEnded, Usage
from .model_requests import Answer, Asking
from .reply_repair import is_empty, repaired
from .telemetry import CACHED_TOKENS, INPUT_MESSAGES, INPUT_TOKENS, OUTPUT_MESSAGES, OUTPUT_TOKENS, RESPONSE_MODEL
from .tool_calls import Calling, Listener

if TYPE_CHECKING:
    from collections.abc import Iterable

_EMPTY_ANSWERS = 2
_OURSELVES = "handrail"


class Interrupted(Exception):  # ends a turn, is no error
    """The person wants to speak."""


class Loop:
    """Turns of one conversation. One at a time; `interrupt` may come from any thread.

    `system` gives the prompt, `shorten` keeps the conversation within the window, `news` gives what the model should know
    before it goes on.
    """

    def __init__(
        self,
        asking: Asking,
        conversation: Conversation,
        calling: Calling,
        *,
        system: Callable[[], str],
        shorten: Shortening | None = None,
        news: Callable[[bool], Iterable[str]] = lambda first: (),  # noqa: ARG005
        budgets: Budgets = DEFAULT_BUDGETS,
    ) -> None:
        self.asking, self.conversation, self.calling, self.budgets = asking, conversation, calling, budgets
        self._system, self._shorten, self._news = system, shorten, news
        self._stop = CancelToken()
        self._turn = Turn(budgets)

    def run(self, text: str | list[JsonDict], listener: Listener = lambda event: None) -> TurnEnded:  # noqa: ARG005
        """One turn, for sync callers."""
        return run_async(self.arun(text, listener))

    def interrupt(self, reason: str = "the person interrupted") -> None:
        """Stop what runs: the model's answer, and every call. What was done is kept."""
        self._stop.cancel(reason)

    def charge(self, usage: Usage) -> None:
        """Count what somebody took who works for this turn."""
        self._turn.charge(usage)

    def left(self) -> Budgets:
        """What this turn may still take."""
        return self._turn.left()

    async def arun(
        self,
        text: str | list[JsonDict],
        listener: Listener = lambda event: None,  # noqa: ARG005
        *,
        adding: Callable[[], Awaitable[str]] | None = None,
    ) -> TurnEnded:
        """One turn: from what the person says, and what is added to it, to the answer. It raises only for what is wrong
        with us."""
        self._stop = CancelToken()
        self._turn = turn = Turn(self.budgets)
        self.calling.start_turn()
        try:
            self.conversation.complete("its result was not kept")
            self._tell_news(first=True)
            self.conversation.add([{"role": "user", "content": text}])
            if adding is not None and (added := await self._interruptible(adding(), None)):
                self.conversation.say(added, by=_OURSELVES)
            ended = await self._until_answered(turn, listener)
        except Interrupted:
            self._complete("the person interrupted")
            ended = turn.ended(End.INTERRUPTED, self._stop.reason)
        except TimeoutError:
            ended = turn.ended(End.TIME, "the time for this turn is over")
        except (ModelError, StoreError) as error:
            ended = turn.ended(End.FAILED, str(error))
        except asyncio.CancelledError:
            self._stop.cancel("the caller went away")
            self._complete("the caller went away")
            raise
        listener(ended)
        return ended

    async def _until_answered(self, turn: Turn, listener: Listener) -> TurnEnded:
        empty = 0
        while True:
            over = turn.over()
            if over is not None:
                return turn.ended(over, f"the budget for {over.value} is used up")
            tools = self.calling.tools(min(model.context_tokens for model in self.asking.models))
            message, answer = await self._answer(turn, tools, listener)
            if is_empty(message):
                empty += 1
                if empty > _EMPTY_ANSWERS:
                    raise ModelError(f"{answer.model} answered {empty} times with nothing; try another model")
                listener(Notice(f"{answer.model} answered with nothing; asking again"))
                self.conversation.say("Your last answer was empty. Answer, or call a tool.", by=_OURSELVES)
                continue
            listener(MessageEnded(message, answer.usage))
            if answer.cut_off:
                listener(Notice("the answer reached the longest that the model may write"))
            if not message.get("tool_calls"):
                return turn.ended(End.ANSWERED)
            results, calls = await self.calling.run(
                message["tool_calls"], self._stop, listener, seconds=turn.seconds_left()
            )
            self.conversation.add(results, calls=calls)
            if self._stop.cancelled:
                raise Interrupted
            self._tell_news(first=False)

    async def _answer(self, turn: Turn, tools: list[JsonDict], listener: Listener) -> tuple[JsonDict, Answer]:
        """The model's next message, which is in the conversation unless it is empty."""
        await self._shortened(tools, listener)
        try:
            answer, asked = await self._ask(turn, tools, listener)
        except ModelError as error:
            if not error.too_long or self._shorten is None:
                raise
            # The window is smaller than we were told: half of what was refused is tried once.
            listener(Notice(f"{error}; shortening the conversation"))
            await self._shortened(tools, listener, shorter_than=estimate(self.conversation) / 2)
            answer, asked = await self._ask(turn, tools, listener)
        names = {tool["function"]["name"] for tool in tools}
        message, problem = repaired(answer.message, tools=names, used_ids=self.conversation.call_ids)
        if problem:
            listener(Notice(f"{answer.model}: {problem}"))
        turn.note(answer.usage, message)
        self.conversation.add([] if is_empty(message) else [message], asked=asked)
        return message, answer

    async def _shortened(self, tools: list[JsonDict], listener: Listener, **more: float) -> None:
        if self._shorten is not None and self._shorten.is_due(self.conversation, self.asking, tools, **more):
            work = self._shorten(self.conversation, self.asking, tools, listener, **more)
            self.charge(await self._interruptible(work, self._turn.seconds_left()))

    async def _ask(self, turn: Turn, tools: list[JsonDict], listener: Listener) -> tuple[Answer, StoredModelCall]:
        """The model's whole answer, and what it took. When it is stopped, what it had written is kept."""
        written: list[str] = []
        messages = [{"role": "system", "content": self._system()}, *self.conversation.for_model]

        async def ask() -> Answer:
            async for event in self.asking.ask(messages, tools):
                if isinstance(event, Answer):
                    return event
                if isinstance(event, TextDelta):
                    written.append(event.text)
                elif isinstance(event, Notice):
                    written.clear()
                listener(event)
            raise ModelError("the model gave no answer")

        began, name = time.time(), self.asking.models[0].name
        session = self.conversation.info.id
        span = self.calling.telemetry.model(name, getattr(self.asking.models[0], "provider", DEFAULT_PROVIDER), session)
        try:
            answer = await self._interruptible(ask(), turn.seconds_left())
        except BaseException as error:
            span.end({INPUT_MESSAGES: messages}, error=type(error).__name__)
            if isinstance(error, ModelError):
                failed = StoredModelCall(began, time.time() - began, name, error=str(error))
                self.conversation.add([], asked=failed)
            elif isinstance(error, Interrupted | TimeoutError) and "".join(written).strip():
                self.conversation.add([{"role": "assistant", "content": "".join(written)}])
            raise
        used = answer.usage
        span.end(
            {
                RESPONSE_MODEL: answer.model, INPUT_TOKENS: used.input_tokens, OUTPUT_TOKENS: used.output_tokens,
                CACHED_TOKENS: used.cached_tokens, INPUT_MESSAGES: messages, OUTPUT_MESSAGES: [answer.message],
            }
        )  # fmt: skip
        return answer, StoredModelCall(began, time.time() - began, answer.model, *used)

    async def _interruptible(self, work: Any, seconds: float | None) -> Any:
        """Raises Interrupted when the person interrupts, and TimeoutError."""
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()
        forget = self._stop.on_cancel(lambda: loop.call_soon_threadsafe(task.cancel))
        try:
            return await asyncio.wait_for(task, seconds)
        except asyncio.CancelledError:
            if not self._stop.cancelled:
                raise
            raise Interrupted from None
        finally:
            forget()

    def _complete(self, reason: str) -> None:
        with contextlib.suppress(StoreError):  # the next turn begins with it
            self.conversation.complete(reason)

    def _tell_news(self, *, first: bool) -> None:
        for text in self._news(first):
            self.conversation.say(text, by=_OURSELVES)

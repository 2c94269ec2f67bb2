"""The agent loop: ask the model, run the tools it calls, send it the results, until it calls no more."""

import asyncio
import contextlib
import json
import re
import time
import uuid
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any

from ..core.outcome import parsed
from ..errors import ModelError, StoreError, UnknownOutcome
from ..settings.services import DEFAULT_PROVIDER
from ..store.sessions import StoredModelCall
from ..types import CancelToken, JsonDict
from .conversation import Compaction, Conversation, estimate
from .events import Budgets, End, Event, MessageEnded, Notice, TextDelta, ToolEnded, Turn, TurnEnded
from .model_middleware import ModelMiddleware
from .models.base import Answer, ModelRequests, whole_answer
from .telemetry import CACHED_TOKENS, INPUT_MESSAGES, INPUT_TOKENS, OUTPUT_MESSAGES, OUTPUT_TOKENS, RESPONSE_MODEL
from .tool_calls import Listener, ToolCalls, ignore

_EMPTY_ANSWERS = 2
_MAX_CONTINUED = 3  # by hooks, in one turn
_OURSELVES = "handrail"
# How models write a call as text when their server does not recognise it: Hermes and Qwen, Llama, Mistral, Claude, DeepSeek;
# and an object that is the whole answer.
_TAGGED = re.compile(r"<tool_call>\s*(\{.*?\})\s*(?:</tool_call>|\Z)", re.DOTALL)
_FUNCTION = re.compile(r"<function=([\w.-]+)>\s*(\{.*?\})\s*</function>", re.DOTALL)
_LISTED = re.compile(r"\[TOOL_CALLS\]\s*(\[.*\])", re.DOTALL)
_INVOKED = re.compile(r"""<invoke name=["']([\w.-]+)["']>(.*?)</invoke>""", re.DOTALL)
_PARAMETER = re.compile(r"""<parameter name=["']([\w.-]+)["']>(.*?)</parameter>""", re.DOTALL)
_DEEPSEEK = re.compile(
    r"<｜tool▁sep｜>([\w.-]+)\s*(?:```json)?\s*(\{.*?\})\s*(?:```)?\s*<｜tool▁call▁end｜>", re.DOTALL
)
_WHOLE = re.compile(r"\A\s*(?:<\|python_tag\|>|```(?:json)?)?\s*(\{.*\})\s*(?:```)?\s*\Z", re.DOTALL)
# What is left around calls that were taken out.
_AROUND = re.compile(r"</?(?:tool_calls?|function_calls)>|<｜[^<>｜]*｜>(?:function)?")


class Interrupted(Exception):
    """The user interrupted: this ends a turn and is not an error."""


class Loop:
    """The turns of one conversation, one at a time; `interrupt` may be called from any thread. `system` returns the prompt,
    `compaction` keeps the conversation within the window, `notifications` returns what the model should know before it
    continues; its argument tells whether a turn starts. `ask_for_more` asks whether to go on with as much again when a budget
    is used up."""

    def __init__(  # noqa: PLR0913  each is a part that can be replaced
        self,
        requests: ModelRequests,
        conversation: Conversation,
        tool_calls: ToolCalls,
        *,
        system: Callable[[], str],
        compaction: Compaction,
        notifications: Callable[[bool], Iterable[str]],
        budgets: Budgets,
        hook: Callable[..., list[Any]] | None,
        ask_for_more: Callable[[End], Awaitable[bool]] | None,
        middleware: ModelMiddleware | None,
    ) -> None:
        self._hook = hook
        self.requests, self.conversation, self.tool_calls, self.budgets = requests, conversation, tool_calls, budgets
        self._system, self._compaction, self._notifications = system, compaction, notifications
        self._ask_for_more, self._middleware = ask_for_more, middleware
        self._stop = CancelToken()
        self.turn = Turn(budgets)

    def interrupt(self, reason: str = "the user interrupted") -> None:
        """Stop the model's answer and every running call. What was done is kept."""
        self._stop.cancel(reason)

    async def arun(
        self,
        text: str | list[JsonDict] | None,
        listener: Listener = ignore,
        *,
        adding: Callable[[], Awaitable[str]] | None = None,
    ) -> TurnEnded:
        """One turn: from the user's message, with what `adding` adds to it, to the answer. It raises only for bugs of ours.
        Without a message it goes on with the turn that was interrupted."""
        self._stop = CancelToken()
        self.turn = turn = Turn(self.budgets)
        self.tool_calls.start_turn()
        try:
            self.conversation.complete(
                "it was begun, but its result was not stored; look before you do it again", UnknownOutcome
            )
            self._notify_model(first=True)
            if text is not None:
                self.conversation.add([{"role": "user", "content": text}])
            if adding is not None and (added := await self._interruptible(adding(), None)):
                self.conversation.say(added, by=_OURSELVES)
            ended = await self._within_time(turn, listener)
        except Interrupted:
            self._complete("the user interrupted")
            ended = turn.ended(End.INTERRUPTED, self._stop.reason)
            self._observe("agent_loop_stopped", session_id=self.conversation.info.id, reason=self._stop.reason)
        except (ModelError, StoreError) as error:
            ended = turn.ended(End.FAILED, str(error))
        except asyncio.CancelledError:
            self._stop.cancel("the caller is gone")
            self._complete("the caller is gone")
            raise
        listener(ended)
        return ended

    async def _within_time(self, turn: Turn, listener: Listener) -> TurnEnded:
        while True:
            try:
                return await self._until_answered(turn, listener)
            except TimeoutError:
                if not await self._may_go_on(End.TIME, turn, listener):
                    return turn.ended(End.TIME, "this turn timed out")

    async def _may_go_on(self, over: End, turn: Turn, listener: Listener) -> bool:
        """Pause and ask. A no, or nobody to ask, ends the turn; `resume` goes on with it later."""
        if self._ask_for_more is None:
            return False
        listener(Notice(f"the budget for {over.value} is used up; somebody is asked whether to go on"))
        if not await self._interruptible(self._ask_for_more(over), None):
            return False
        turn.extend(over)
        return True

    async def _until_answered(self, turn: Turn, listener: Listener) -> TurnEnded:
        empty = continued = 0
        changed: set[str] = set()

        def note_changes(event: Any) -> None:
            if isinstance(event, ToolEnded):
                changed.update(each.path for each in event.changes)
            listener(event)

        while True:
            over = turn.over()
            if over is not None and not await self._may_go_on(over, turn, listener):
                return turn.ended(over, f"the budget for {over.value} is used up")
            tools = self.tool_calls.tools(min(model.context_tokens for model in self.requests.models))
            message, answer = await self._answer(turn, tools, listener)
            if is_empty(message):
                empty += 1
                if empty > _EMPTY_ANSWERS:
                    raise ModelError(f"{answer.model} sent {empty} empty answers; try another model")
                listener(Notice(f"{answer.model} sent an empty answer; asking again"))
                self.conversation.say("Your last answer was empty. Answer, or call a tool.", by=_OURSELVES)
                continue
            listener(MessageEnded(message, answer.usage))
            if answer.cut_off:
                listener(Notice("the answer was cut off at the model's maximum length"))
            if not message.get("tool_calls"):
                if continued < _MAX_CONTINUED and await self._is_continued(message, changed, continued):
                    continued += 1
                    continue
                return turn.ended(End.ANSWERED)
            if text := message["content"]:
                self._observe("on_interim_message", **self._about(turn.model_calls), text=text, already_streamed=True)
            seconds, asked_for = turn.seconds_left(), message["tool_calls"]
            results, calls = await self.tool_calls.run(asked_for, self._stop, note_changes, seconds=seconds)
            self.conversation.add(results, calls=calls)
            if self._stop.cancelled:
                raise Interrupted
            self._notify_model(first=False)

    async def _is_continued(self, answer: JsonDict, changed: Collection[str], attempt: int) -> bool:
        """Whether a hook has something to be done about the changed files before the turn ends. The model is told."""
        if not changed:
            return False
        about = {"session_id": self.conversation.info.id, "model": self.requests.models[0].name, "attempt": attempt}
        more = {"final_response": answer["content"], "changed_paths": sorted(changed)}
        for found in await self._call_hook("pre_verify", **about, **more, coding=True):
            how = (found.get("action"), found.get("decision")) if isinstance(found, dict) else None
            text = how in (("continue", None), (None, "block")) and found.get("message", found.get("reason"))
            if text:
                self.conversation.say(str(text), by=_OURSELVES)
                return True
        return False

    async def _answer(self, turn: Turn, tools: list[JsonDict], listener: Listener) -> tuple[JsonDict, Answer]:
        """The model's next message, added to the conversation unless it is empty."""
        await self._compacted(tools, listener)
        try:
            answer, asked = await self._ask(turn, tools, listener)
        except ModelError as error:
            if not error.too_long:
                raise
            # The window is smaller than configured: try half of the refused size, once.
            listener(Notice(f"{error}; shortening the conversation"))
            await self._compacted(tools, listener, shorter_than=estimate(self.conversation) / 2)
            answer, asked = await self._ask(turn, tools, listener)
        names = {tool["function"]["name"] for tool in tools}
        message, problem = repaired(answer.message, tools=names, used_ids=self.conversation.call_ids)
        if problem:
            listener(Notice(f"{answer.model}: {problem}"))
        turn.note(answer.usage, message)
        self.conversation.add([] if is_empty(message) else [message], asked=asked)
        return message, answer

    async def _compacted(self, tools: list[JsonDict], listener: Listener, **more: float) -> None:
        if self._compaction.is_due(self.conversation, self.requests, tools, **more):
            work = self._compaction(self.conversation, self.requests, tools, listener, **more)
            self.turn.charge(await self._interruptible(work, self.turn.seconds_left()))

    async def _ask(self, turn: Turn, tools: list[JsonDict], listener: Listener) -> tuple[Answer, StoredModelCall]:
        """The model's whole answer and its record. When it is stopped, the text so far is kept."""
        written: list[str] = []
        messages = [{"role": "system", "content": self._system()}, *self.conversation.for_model]

        def receive(event: Event) -> None:
            if isinstance(event, TextDelta):
                written.append(event.text)
                self._observe("on_stream_delta", **about, delta=event.text, kind="text")
            elif isinstance(event, Notice):
                written.clear()
            listener(event)

        began, about = time.time(), self._about(turn.model_calls + 1)
        name = about["model"]
        span = self.tool_calls.telemetry.model(name, about["provider"], about["session_id"])
        asking = self.requests.ask(messages, tools)
        if self._middleware is not None and self._middleware.is_wanted():
            request = await self._middleware.rewritten(self.requests, messages, tools, about)
            messages = request.get("messages") or messages
            asking = self._middleware.ask(self.requests, request, about)
        await self._call_hook("pre_api_request", **about, request_messages=messages, message_count=len(messages))
        self._observe("on_stream_start", **about)
        try:
            answer = await self._interruptible(whole_answer(asking, receive), turn.seconds_left())
        except BaseException as error:
            span.end({INPUT_MESSAGES: messages}, error=type(error).__name__)
            why = str(error) or type(error).__name__
            self._observe("on_stream_end", **about, final_text="".join(written), finished=False, error=why)
            if isinstance(error, ModelError):
                failed = StoredModelCall(began, time.time() - began, name, error=str(error))
                self.conversation.add([], asked=failed)
                await self._call_hook("api_request_error", **about, error=str(error))
            elif isinstance(error, Interrupted | TimeoutError) and "".join(written).strip():
                self.conversation.add([{"role": "assistant", "content": "".join(written)}])
            raise
        self._observe("on_stream_end", **about, final_text="".join(written), finished=True, error=None)
        used = answer.usage
        span.end(
            {
                RESPONSE_MODEL: answer.model, INPUT_TOKENS: used.input_tokens, OUTPUT_TOKENS: used.output_tokens,
                CACHED_TOKENS: used.cached_tokens, INPUT_MESSAGES: messages, OUTPUT_MESSAGES: [answer.message],
            }
        )  # fmt: skip
        about |= {"response_model": answer.model, "assistant_message": answer.message, "usage": used._asdict()}
        await self._call_hook("post_api_request", **about, api_duration=time.time() - began)
        return answer, StoredModelCall(began, time.time() - began, answer.model, *used)

    def _about(self, api_call: int) -> JsonDict:
        """What hooks learn of a request to the model."""
        model = self.requests.models[0]
        about = {"session_id": self.conversation.info.id, "model": model.name, "api_call_count": api_call}
        return {**about, "provider": getattr(model, "provider", DEFAULT_PROVIDER)}

    async def _call_hook(self, name: str, **payload: Any) -> list[Any]:
        return [] if self._hook is None else await asyncio.to_thread(self._hook, name, **payload)

    def _observe(self, name: str, **payload: Any) -> None:
        """For a hook that is called later, on a thread of its own."""
        if self._hook is not None:
            self._hook(name, **payload)

    async def _interruptible(self, work: Any, seconds: float | None) -> Any:
        """Raises Interrupted when the user interrupts, and TimeoutError."""
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
        with contextlib.suppress(StoreError):  # the next turn starts with it
            self.conversation.complete(reason)

    def _notify_model(self, *, first: bool) -> None:
        for text in self._notifications(first):
            self.conversation.say(text, by=_OURSELVES)


def repaired(message: JsonDict, *, tools: Collection[str], used_ids: Collection[str]) -> tuple[JsonDict, str]:
    """The message, and what was wrong with it ("" for nothing). Text becomes a call only if it names a tool."""
    content = message.get("content") or ""
    calls = [_call(raw) for raw in message.get("tool_calls") or ()]
    problem = ""
    if not calls and isinstance(content, str):
        content, calls = _calls_in_text(content, tools)
        problem = "the calls were written as text" if calls else ""
    seen: set[str] = set()
    for call in calls:
        if not call["id"] or call["id"] in seen or call["id"] in used_ids:
            call["id"] = f"call_{uuid.uuid4().hex[:16]}"
        seen.add(call["id"])
    made: JsonDict = {"role": "assistant", "content": content}
    if calls:
        made["tool_calls"] = calls
    return made, problem


def is_empty(message: JsonDict) -> bool:
    return not message.get("tool_calls") and not str(message.get("content") or "").strip()


def _call(raw: Any) -> JsonDict:
    function = raw.get("function") or {}
    arguments = function.get("arguments", "")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return {
        "id": str(raw.get("id") or ""),
        "type": "function",
        "function": {"name": str(function.get("name") or ""), "arguments": arguments or "{}"},
    }


def _calls_in_text(text: str, tools: Collection[str]) -> tuple[str, list[JsonDict]]:
    """The text without its calls, and the calls. All calls are understood, or none is taken."""
    for pattern, read in _WAYS:
        found = [call for match in pattern.finditer(text) for call in read(match)]
        if found and all(call is not None and call["function"]["name"] in tools for call in found):
            rest = _AROUND.sub("", pattern.sub("", text)).strip()
            return rest, [call for call in found if call is not None]
    return text, []


def _listed(found: Any) -> list[JsonDict | None]:
    return [_from_json(each) for each in found] if isinstance(found, list) else [None]


def _from_json(found: Any) -> JsonDict | None:
    if not isinstance(found, dict) or not isinstance(found.get("name"), str):
        return None
    return _named(found["name"], found.get("arguments", found.get("parameters", {})))


def _named(name: str, arguments: Any) -> JsonDict:
    return _call({"function": {"name": name, "arguments": arguments}})


_WAYS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], list[JsonDict | None]]], ...] = (
    (_TAGGED, lambda match: [_from_json(parsed(match[1]))]),
    (_FUNCTION, lambda match: [_named(match[1], match[2])]),
    (_LISTED, lambda match: _listed(parsed(match[1]))),
    (_INVOKED, lambda match: [_named(match[1], dict(_PARAMETER.findall(match[2])))]),
    (_DEEPSEEK, lambda match: [_named(match[1], match[2])]),
    (_WHOLE, lambda match: [_from_json(parsed(match[1]))]),
)

"""The interface of a model (an answer in pieces, an error that says whether to retry), and asking one for a whole answer."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ...errors import ModelError
from ...protocols import Model
from ...settings.services import DEFAULT_PROVIDER
from ...types import JsonDict
from ..events import Event, Notice, ReasoningDelta, TextDelta, Usage

Messages = Sequence[Mapping[str, Any]]


class TextPiece(NamedTuple):
    text: str


class ReasoningPiece(NamedTuple):
    text: str


class CallPiece(NamedTuple):
    """A part of a tool call. The pieces of one call have the same `place`; each field is filled by one or more of them."""

    place: int
    id: str = ""
    name: str = ""
    arguments: str = ""


class Finished(NamedTuple):
    """The last piece. `cut_off`: the answer reached the model's maximum length."""

    usage: Usage = Usage()
    cut_off: bool = False


class Prices(NamedTuple):
    """US dollars per million tokens, for servers that report no cost. 0 means unknown."""

    input: float = 0.0
    output: float = 0.0

    def added_to(self, usage: Usage) -> Usage:
        if usage.cost is not None or not any(self):
            return usage
        return usage._replace(cost=(usage.input_tokens * self.input + usage.output_tokens * self.output) / 1e6)


NO_PRICES = Prices()
Piece = TextPiece | ReasoningPiece | CallPiece | Finished


class StreamingModel(Protocol):
    """A model that streams. Raises ModelError, which tells whether the same request may work later."""

    @property
    def name(self) -> str: ...

    @property
    def context_tokens(self) -> int:
        """The context window in tokens, answer included."""

    def stream(self, messages: Messages, tools: Messages) -> AsyncIterator[Piece]: ...


class ReplyAdapter:
    """Makes a streaming model of one that returns its whole reply."""

    def __init__(self, model: Model, *, name: str = "", context_tokens: int = 128_000) -> None:
        self._model = model
        self.name = name or getattr(model, "name", "") or type(model).__name__
        self.context_tokens = context_tokens

    async def stream(self, messages: Messages, tools: Messages) -> AsyncIterator[Piece]:
        reply = await asyncio.to_thread(self._model.reply, messages, tools)
        if reply.content:
            yield TextPiece(reply.content)
        for index, call in enumerate(reply.tool_calls):
            function = call.get("function", call)
            yield CallPiece(index, str(call.get("id", "")), function.get("name", ""), function.get("arguments", ""))
        yield Finished()


def streaming(model: Model | StreamingModel) -> StreamingModel:
    return model if hasattr(model, "stream") else ReplyAdapter(model)  # type: ignore[return-value]


_FIRST_WAIT_SECONDS = 1.0
_MAX_WAIT_SECONDS = 60.0
MAX_CALLS = 128
MAX_ANSWER_CHARS = 2_000_000


class Answer(NamedTuple):
    """A whole answer: the message for the conversation, and its usage."""

    message: JsonDict
    usage: Usage
    model: str
    cut_off: bool


async def whole_answer(asking: AsyncIterator[Event | Answer], listener: Callable[[Event], object]) -> Answer:
    """The answer, once it is whole; `listener` gets the events before. Raises ModelError."""
    async for event in asking:
        if isinstance(event, Answer):
            return event
        listener(event)
    raise ModelError("the model sent no answer")


async def ask_aside(requests: "ModelRequests", messages: Messages, task: str, hook: Callable[..., object]) -> Answer:
    """An answer beside the conversation, for the `task`. `hook` calls those who observe it. Raises ModelError."""
    model, began = requests.models[0], time.time()
    sent = {"model": model.name, "provider": getattr(model, "provider", DEFAULT_PROVIDER)}
    request = {**sent, "messages": list(messages), "message_count": len(messages)}
    about: JsonDict = {"aux_task": task, "request": request}
    hook("pre_auxiliary_call", **about)
    about |= {"response": {}, "error": None}
    try:
        answer = await whole_answer(requests.ask(messages, []), lambda _: None)
        about["response"] = {"response_model": answer.model, "message": answer.message, "usage": answer.usage._asdict()}
        return answer
    except BaseException as error:
        about["error"] = str(error) or type(error).__name__
        raise
    finally:
        about["response"]["api_duration"] = time.time() - began
        hook("post_auxiliary_call", **about)


class PartialAnswer:
    def __init__(self) -> None:
        self.text: list[str] = []
        self.chars = 0
        self.calls: dict[int, list[str]] = {}
        self.end: Finished | None = None

    def add(self, piece: Piece) -> Event | None:
        if isinstance(piece, TextPiece):
            self.text.append(piece.text)
            self._count(len(piece.text))
            return TextDelta(piece.text)
        if isinstance(piece, ReasoningPiece):
            self._count(len(piece.text))
            return ReasoningDelta(piece.text)
        if isinstance(piece, CallPiece):
            call = self.calls.setdefault(piece.place, ["", "", ""])
            call[0] = call[0] or piece.id
            call[1] = call[1] or piece.name
            call[2] += piece.arguments
            self._count(len(piece.arguments))
        else:
            self.end = piece
        return None

    def _count(self, chars: int) -> None:
        self.chars += chars
        if self.chars > MAX_ANSWER_CHARS or len(self.calls) > MAX_CALLS:
            raise ModelError(
                f"the answer has more than {MAX_ANSWER_CHARS:,} characters or {MAX_CALLS} calls and was stopped; "
                "ask for less at once"
            )

    def answer(self, model: str) -> Answer:
        message: JsonDict = {"role": "assistant", "content": "".join(self.text)}
        if calls := [self.calls[index] for index in sorted(self.calls)]:
            message["tool_calls"] = [
                {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
                for call_id, name, arguments in calls
            ]
        end = self.end or Finished()
        return Answer(message, end.usage, model, end.cut_off)


class ModelRequests:
    """Models in the order in which they are tried, and the attempts per model: retries with back-off, then fallbacks."""

    def __init__(
        self,
        models: Sequence[StreamingModel],
        *,
        attempts: int = 4,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.models = list(models)
        self._attempts, self._sleep = attempts, sleep

    def tuned(self, name: str, options: Mapping[str, Any]) -> "ModelRequests":
        """The same with further fields in each request, and another first model of that name at the same place. Models that
        cannot do that stay as they are."""
        if not options and name == self.models[0].name:
            return self
        names = [name, *(model.name for model in self.models[1:])]
        pairs = [(model, getattr(model, "tuned", None), each) for model, each in zip(self.models, names, strict=True)]
        models = [model if change is None else change(each, options) for model, change, each in pairs]
        return ModelRequests(models, attempts=self._attempts, sleep=self._sleep)

    async def ask(self, messages: Messages, tools: Messages) -> AsyncIterator[Event | Answer]:
        """Events while the answer is written, then the whole Answer. Raises ModelError when no model answers. An attempt that
        breaks off is repeated. No tool has run by then, so nothing happens twice; a Notice says that what was shown so far is
        void."""
        for place, model in enumerate(self.models):
            for attempt in range(self._attempts):
                partial = PartialAnswer()
                try:
                    async for piece in _pieces(model, messages, tools):
                        if (event := partial.add(piece)) is not None:
                            yield event
                    yield partial.answer(model.name)
                    return
                except ModelError as error:
                    # With jitter, so that agents that were refused together do not retry together.
                    pause = min(_MAX_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2.0**attempt) * random.uniform(0.5, 1.5)
                    wait = pause if error.retry_after is None else error.retry_after
                    # Rather than wait an hour, use another model or fail.
                    last = attempt + 1 == self._attempts or not error.retryable or wait > _MAX_WAIT_SECONDS * 1.5
                    if last and place + 1 == len(self.models):
                        raise
                    void = ", discarding it" if partial.text else ""
                    if last:
                        yield Notice(f"{error}{void}; asking {self.models[place + 1].name} instead")
                        break
                    yield Notice(f"{error}{void}; retrying in {wait:.0f} s")
                    await self._sleep(wait)


async def _pieces(model: StreamingModel, messages: Messages, tools: Messages) -> AsyncIterator[Piece]:
    try:
        async for piece in model.stream(messages, tools):
            yield piece
    except ModelError:
        raise
    except Exception as error:  # a custom model may raise anything
        raise ModelError(f"{model.name} failed: {type(error).__name__}: {error}") from error

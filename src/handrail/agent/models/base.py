"""The interface of a model: an answer that comes in pieces, and an error that tells whether to retry."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ...protocols import Model
from ..events import Usage

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

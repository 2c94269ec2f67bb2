"""Ask the agent's models on behalf of an MCP server whose settings allow it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from ..errors import ModelError
from .models.base import StreamingModel, TextPiece, streaming

if TYPE_CHECKING:
    from ..protocols import Model
    from ..types import JsonDict


def sampler_of(models: Sequence[Model | StreamingModel]) -> Callable[[list[JsonDict]], Awaitable[tuple[str, str]]]:
    """Returns a function that asks: the text of the first model that answers, and its name. No tools are offered."""

    async def ask(messages: list[JsonDict]) -> tuple[str, str]:
        problem = ModelError("no model is configured")
        for model in map(streaming, models):
            try:
                pieces = [piece.text async for piece in model.stream(messages, []) if isinstance(piece, TextPiece)]
            except ModelError as error:
                problem = error
                continue
            return "".join(pieces), model.name
        raise problem

    return ask

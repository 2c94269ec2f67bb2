"""Try a model: does it answer, how fast, and does it call a tool when asked to?"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..agent.models.base import StreamingModel

_TOOL = {
    "type": "function",
    "function": {
        "name": "echo",
        "description": "Gives back the text.",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    },
}
_WORD = [{"role": "user", "content": "Answer with one word: hello."}]
_CALL = [{"role": "user", "content": "Call the tool echo with the text: hello. Do not answer yourself."}]


class Trial(NamedTuple):
    answer: str
    first_seconds: float
    seconds: float
    calls_tools: bool


async def tried(model: StreamingModel) -> Trial:
    """Raises ModelError, at the first thing that goes wrong: this is where a person waits for the reason."""
    from ..agent.models.base import CallPiece, TextPiece

    began, first, text = time.monotonic(), 0.0, ""
    async for piece in model.stream(_WORD, []):
        first = first or time.monotonic() - began
        if isinstance(piece, TextPiece):
            text += piece.text
    seconds = time.monotonic() - began
    pieces = [piece async for piece in model.stream(_CALL, [_TOOL])]
    calls = any(isinstance(piece, CallPiece) and piece.name == "echo" for piece in pieces)
    return Trial(text.strip(), first, seconds, calls)

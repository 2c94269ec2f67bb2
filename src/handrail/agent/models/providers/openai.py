"""Any server that speaks OpenAI's chat completions."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from ....errors import ModelError
from ....types import JsonDict
from ...events import Usage
from ..base import CallPiece, Finished, Messages, Piece, ReasoningPiece, TextPiece
from ..http_client import SdkModel


class OpenAIChat(SdkModel):
    """One model behind one base URL."""

    provider, brand, extra, resource, key_variable = "openai", "OpenAI", "agent", "chat.completions", "OPENAI_API_KEY"

    def __init__(
        self, name: str, *, base_url: str | None = None, options: dict[str, Any] | None = None, **more: Any
    ) -> None:
        super().__init__(name, base_url=base_url, **more)
        self.where = base_url or "https://api.openai.com/v1"
        self._options = dict(options or {})

    async def stream(self, messages: Messages, tools: Messages) -> AsyncIterator[Piece]:
        # As `extra_body`: the client would validate every field of every message, which blocks the loop for long conversations.
        body: dict[str, Any] = {"messages": images_apart(messages), **self._options}
        if tools:
            body["tools"] = list(tools)
        usage, reason = Usage(), ""
        async with self.open() as client:
            with self.problems():
                stream = await client.chat.completions.create(
                    model=self.name, messages=[], stream=True, stream_options={"include_usage": True}, extra_body=body
                )
                async for chunk in stream:
                    usage = _usage(chunk) or usage
                    for choice in (chunk.choices or ())[:1]:
                        reason = choice.finish_reason or reason
                        for piece in _pieces(choice.delta):
                            yield piece
        if not reason:
            raise ModelError(f"{self.name}: the answer was cut off before its end", retryable=True)
        yield Finished(self._prices.added_to(usage), cut_off=reason == "length")


MODEL = OpenAIChat


def _pieces(delta: Any) -> list[Piece]:
    if delta is None:
        return []
    pieces: list[Piece] = []
    thought = getattr(delta, "reasoning_content", None) or getattr(delta, "reasoning", None)
    if isinstance(thought, str) and thought:
        pieces.append(ReasoningPiece(thought))
    if delta.content:
        pieces.append(TextPiece(str(delta.content)))
    for number, call in enumerate(delta.tool_calls or ()):
        function = call.function
        index = call.index if isinstance(call.index, int) else number
        pieces.append(CallPiece(index, call.id or "", *_function(function)))
    if getattr(delta, "function_call", None):  # the predecessor of tool calls, which some servers still send
        pieces.append(CallPiece(0, "", *_function(delta.function_call)))
    return pieces


def _function(function: Any) -> tuple[str, str]:
    """Its name and arguments. Some servers send the arguments as an object, not as text."""
    if function is None:
        return "", ""
    arguments = function.arguments
    if arguments and not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return str(function.name or ""), arguments or ""


def _usage(chunk: Any) -> Usage | None:
    found = getattr(chunk, "usage", None)
    if found is None:
        return None
    details = getattr(found, "prompt_tokens_details", None)
    cached = getattr(details, "cached_tokens", None) or 0
    cost = getattr(found, "cost", None)
    return Usage(
        found.prompt_tokens or 0,
        found.completion_tokens or 0,
        cached,
        float(cost) if isinstance(cost, int | float) else None,
    )


def images_apart(messages: Messages) -> list[Mapping[str, Any]]:
    """The same conversation without images in tool messages. Nothing may come between the results of one answer, so the images
    follow the last of them."""
    moved: list[Mapping[str, Any]] = []
    waiting: list[JsonDict] = []
    for message in messages:
        if waiting and message["role"] != "tool":
            moved.append(_following(waiting))
            waiting = []
        content = message.get("content")
        if message["role"] != "tool" or isinstance(content, str) or content is None:
            moved.append(message)
            continue
        images = [part for part in content if part.get("type") != "text"]
        texts = [str(part["text"]) for part in content if part.get("type") == "text"]
        moved.append({**message, "content": "\n".join(texts) or "[an image, which follows]"})
        title = {"type": "text", "text": f"From the result of {message.get('name') or 'a tool'}:"}
        waiting += [title, *images] if images else []
    return [*moved, _following(waiting)] if waiting else moved


def _following(parts: list[JsonDict]) -> JsonDict:
    return {"role": "user", "content": parts}

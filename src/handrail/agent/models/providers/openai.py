"""Any server that speaks OpenAI's chat completions."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

from ....errors import ModelError
from ....types import JsonDict
from ...events import Usage
from ..base import CallPiece, Finished, Messages, Piece, ReasoningPiece, TextPiece
from ..http_client import HttpModel


class OpenAIChat(HttpModel):
    provider, key_variable = "openai", "OPENAI_API_KEY"
    address, listing = "https://api.openai.com/v1", "/models"

    async def stream(self, messages: Messages, tools: Messages) -> AsyncIterator[Piece]:
        body: JsonDict = {"messages": images_apart(messages), "stream_options": {"include_usage": True}}
        if tools:
            body["tools"] = list(tools)
        usage, reason = Usage(), ""
        async with aclosing(self.events("/chat/completions", body)) as events:
            with self.problems():
                async for chunk in events:
                    usage = _usage(chunk.get("usage")) or usage
                    for choice in (chunk.get("choices") or ())[:1]:
                        reason = choice.get("finish_reason") or reason
                        for piece in _pieces(choice.get("delta") or {}):
                            yield piece
        if not reason:
            raise ModelError(f"{self.name}: connection lost in the middle of the answer", retryable=True)
        yield Finished(self._prices.added_to(usage), cut_off=reason == "length")


MODEL = OpenAIChat


def _pieces(delta: JsonDict) -> list[Piece]:
    pieces: list[Piece] = []
    thought = delta.get("reasoning_content") or delta.get("reasoning")
    if isinstance(thought, str) and thought:
        pieces.append(ReasoningPiece(thought))
    if delta.get("content"):
        pieces.append(TextPiece(str(delta["content"])))
    for number, call in enumerate(delta.get("tool_calls") or ()):
        index = call["index"] if isinstance(call.get("index"), int) else number
        pieces.append(CallPiece(index, str(call.get("id") or ""), *_function(call.get("function"))))
    if delta.get("function_call"):  # the predecessor of tool calls, which some servers still send
        pieces.append(CallPiece(0, "", *_function(delta["function_call"])))
    return pieces


def _function(function: JsonDict | None) -> tuple[str, str]:
    """Its name and arguments. Some servers send the arguments as an object, not as text."""
    if function is None:
        return "", ""
    arguments = function.get("arguments")
    if arguments and not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return str(function.get("name") or ""), arguments or ""


def _usage(found: JsonDict | None) -> Usage | None:
    if not found:
        return None
    sent, answered = found.get("prompt_tokens") or 0, found.get("completion_tokens") or 0
    cached = (found.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    cost = found.get("cost")
    return Usage(sent, answered, cached, float(cost) if isinstance(cost, int | float) else None)


def images_apart(messages: Messages) -> list[Mapping[str, Any]]:
    """The same conversation without images in tool messages. Nothing may come between the results of one answer, so the images
    follow the last of them."""
    moved: list[Mapping[str, Any]] = []
    waiting: list[JsonDict] = []
    for message in messages:
        if waiting and message["role"] != "tool":
            moved.append({"role": "user", "content": waiting})
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
    return [*moved, {"role": "user", "content": waiting}] if waiting else moved

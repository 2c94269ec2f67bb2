"""Anthropic's messages API, and servers that speak it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from ....core.outcome import parsed
from ....errors import ModelError
from ....types import JsonDict
from ...events import Usage
from ..base import CallPiece, Finished, Messages, Piece, ReasoningPiece, TextPiece
from ..http_client import HttpModel

_MAX_ANSWER_TOKENS = 16_000


class AnthropicMessages(HttpModel):
    """One model. The provider is asked to cache everything: a request starts like the previous one."""

    provider, key_variable, context_tokens = "anthropic", "ANTHROPIC_API_KEY", 200_000
    address, listing = "https://api.anthropic.com", "/v1/models?limit=1000"

    def headers(self, key: str) -> dict[str, str]:
        return {"anthropic-version": "2023-06-01", **({"x-api-key": key} if key else {})}

    async def stream(self, messages: Messages, tools: Messages) -> AsyncIterator[Piece]:
        usage, reason = Usage(), ""
        body = {"max_tokens": _MAX_ANSWER_TOKENS, **as_anthropic(messages, tools)}
        async with aclosing(self.events("/v1/messages", body)) as events:
            with self.problems():
                async for event in events:
                    if event.get("type") == "message_start":
                        usage = _started(event["message"].get("usage") or {})
                    elif event.get("type") == "message_delta":
                        reason = event["delta"].get("stop_reason") or reason
                        usage = usage._replace(output_tokens=(event.get("usage") or {}).get("output_tokens") or 0)
                    if (piece := _piece(event)) is not None:
                        yield piece
        if not reason:
            raise ModelError(f"{self.name}: connection lost in the middle of the answer", retryable=True)
        yield Finished(self._prices.added_to(usage), cut_off=reason == "max_tokens")


MODEL = AnthropicMessages


def as_anthropic(messages: Messages, tools: Messages) -> JsonDict:
    """Convert a conversation from OpenAI's format: results become blocks of the next user message."""
    system = "\n\n".join(str(each["content"]) for each in messages if each["role"] == "system")
    turns: list[JsonDict] = []
    for message in messages:
        if message["role"] == "system":
            continue
        role, blocks = _blocks(message)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
    cached_prefix = {"cache_control": {"type": "ephemeral"}}
    if turns:
        turns[-1]["content"][-1].update(cached_prefix)
    request: JsonDict = {"messages": turns}
    if system:
        request["system"] = [{"type": "text", "text": system, **cached_prefix}]
    if tools:
        functions = [each["function"] for each in tools]
        request["tools"] = [
            {"name": each["name"], "description": each["description"], "input_schema": each["parameters"]}
            for each in functions
        ]
        request["tools"][-1].update(cached_prefix)
    return request


def _blocks(message: Mapping[str, Any]) -> tuple[str, list[JsonDict]]:
    content = message.get("content")
    blocks = content_blocks(content)
    if message["role"] == "tool":
        return "user", [{"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": blocks or ""}]
    for call in message.get("tool_calls") or ():
        name, given = call["function"]["name"], parsed(call["function"]["arguments"])
        used = given if isinstance(given, dict) else {}
        blocks.append({"type": "tool_use", "id": call["id"], "name": name, "input": used})
    return str(message["role"]), blocks


def content_blocks(content: str | Sequence[Mapping[str, Any]] | None) -> list[JsonDict]:
    """A message's content, which is text or parts in OpenAI's format, in blocks of Anthropic's."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content.strip() else []
    found: list[JsonDict] = []
    for part in content or ():
        if part.get("type") == "text":
            found.append({"type": "text", "text": part["text"]})
        elif part.get("type") == "image_url":
            found.append({"type": "image", "source": _image(str(part["image_url"]["url"]))})
    return found


def _image(url: str) -> JsonDict:
    if not url.startswith("data:"):
        return {"type": "url", "url": url}
    kind, _, data = url.removeprefix("data:").partition(";base64,")
    return {"type": "base64", "media_type": kind, "data": data}


def _piece(event: JsonDict) -> Piece | None:
    kind, block, delta = event.get("type"), event.get("content_block") or {}, event.get("delta") or {}
    if kind == "content_block_start" and block.get("type") == "tool_use":
        return CallPiece(event["index"], block["id"], block["name"])
    if kind != "content_block_delta":
        return None
    if delta.get("type") == "text_delta":
        return TextPiece(delta["text"])
    if delta.get("type") == "thinking_delta":
        return ReasoningPiece(delta["thinking"])
    if delta.get("type") == "input_json_delta":
        return CallPiece(event["index"], arguments=delta["partial_json"])
    return None


def _started(usage: JsonDict) -> Usage:
    cached = usage.get("cache_read_input_tokens") or 0
    sent = (usage.get("input_tokens") or 0) + cached + (usage.get("cache_creation_input_tokens") or 0)
    return Usage(sent, 0, cached)

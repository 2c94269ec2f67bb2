"""A model's message as its provider wrote it, and the answers to its calls in the same format."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..agent.models.providers.anthropic import content_blocks
from ..core.outcome import error_of, value_of
from ..errors import InvalidArguments
from ..runtime.provider_formats import Format, field_of, read_calls
from ..types import JsonDict


class Message(NamedTuple):
    """The calls of a message, each with an id, and the format in which they came."""

    format: Format
    calls: list[Any]


def read_message(message: Any) -> Message:
    """Chat Completions, Responses, Anthropic, Gemini or MCP (`tools/call`); as JSON objects or the providers' own objects.
    Raises InvalidArguments for a message without calls."""
    if field_of(message, "method") == "tools/call":
        return Message("mcp", [field_of(message, "params")])
    if (parts := _gemini_parts(message)) is not None:
        given = (field_of(part, "functionCall") or field_of(part, "function_call") for part in parts)
        found = [call for call in given if call]
        return Message("gemini", [_numbered(call, number) for number, call in enumerate(found)])
    items = message if isinstance(message, list | tuple) else field_of(message, "output")
    if isinstance(items, list | tuple) and any(field_of(item, "call_id") for item in items):
        return Message("responses", [item for item in items if field_of(item, "type") in ("function_call", None)])
    calls = read_calls(message)
    is_anthropic = any(field_of(call, "type") == "tool_use" for call in calls)
    kept = [call for call in calls if field_of(call, "type") == "tool_use"] if is_anthropic else calls
    return Message("anthropic" if is_anthropic else "openai", kept)


def write_answers(message: Message, answers: Sequence[JsonDict]) -> list[JsonDict]:
    """What to add to the conversation. `answers` are chat messages of the role `tool`, in the order of the calls."""
    if message.format == "openai":
        return list(answers)
    if message.format == "responses":
        return [_responses_item(each) for each in answers]
    if message.format == "anthropic":
        return [{"role": "user", "content": [_anthropic_block(each) for each in answers]}]
    if message.format == "gemini":
        parts = [_gemini_part(each, call) for each, call in zip(answers, message.calls, strict=True)]
        return [{"role": "user", "parts": parts}]
    return [{"content": _mcp_content(each), "isError": error_of(each["content"]) is not None} for each in answers]


def _gemini_parts(message: Any) -> Iterable[Any] | None:
    for candidate in field_of(message, "candidates") or ():
        return _gemini_parts(field_of(candidate, "content"))
    parts = field_of(message, "parts")
    return parts if isinstance(parts, list | tuple) else None


def _numbered(call: Any, number: int) -> JsonDict:
    """Gemini tells calls apart by their place unless it gives them ids."""
    name, given = field_of(call, "name"), field_of(call, "id")
    if not isinstance(name, str):
        raise InvalidArguments("this functionCall has no name")
    return {"name": name, "args": field_of(call, "args") or {}, "id": given or f"call_{number}", "has_id": bool(given)}


def _responses_item(answer: JsonDict) -> JsonDict:
    content = answer["content"]
    if not isinstance(content, str):
        texts = ({"type": "input_text", "text": part["text"]} if part["type"] == "text" else None for part in content)
        images = ({"type": "input_image", "image_url": part.get("image_url", {}).get("url")} for part in content)
        content = [text or image for text, image in zip(texts, images, strict=True)]
    return {"type": "function_call_output", "call_id": answer["tool_call_id"], "output": content}


def _anthropic_block(answer: JsonDict) -> JsonDict:
    blocks = content_blocks(answer["content"])
    block: JsonDict = {"type": "tool_result", "tool_use_id": answer["tool_call_id"], "content": blocks or ""}
    return {**block, "is_error": True} if error_of(answer["content"]) is not None else block


def _gemini_part(answer: JsonDict, call: JsonDict) -> JsonDict:
    content = answer["content"]
    value = value_of(content) if isinstance(content, str) else {"content": content}
    response = value if isinstance(value, dict) else {"output": value}
    given = {"id": call["id"]} if call["has_id"] else {}
    return {"functionResponse": {**given, "name": answer["name"], "response": response}}


def _mcp_content(answer: JsonDict) -> list[JsonDict]:
    found = []
    for block in content_blocks(answer["content"]):
        source = block.get("source", {})
        is_data = source.get("type") == "base64"
        found.append({"type": "image", "data": source["data"], "mimeType": source["media_type"]} if is_data else block)
    return found

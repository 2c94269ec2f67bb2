"""Write an outcome of a call the way MCP has it."""

from __future__ import annotations

import json
import re
from typing import Any

import mcp_types

from ...core.outcome import Outcome, error_of

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,(.*)", re.DOTALL)


def answer_of(outcome: Outcome, *, has_schema: bool = False) -> mcp_types.CallToolResult:
    """Text, also as data if it is an object; images and audio as such; a failure is marked as an error.

    A tool with an output schema promises data, also where its result is something else.
    """
    if isinstance(outcome, dict):
        blocks = [block_of(part) for part in outcome["content"]]
        return mcp_types.CallToolResult(content=blocks, structured_content={} if has_schema else None)
    data = _object_in(outcome)
    if data is None and has_schema:
        data = {"content": outcome}
    return mcp_types.CallToolResult(
        content=[mcp_types.TextContent(text=outcome)], structured_content=data, is_error=error_of(outcome) is not None
    )


def _object_in(text: str) -> dict[str, Any] | None:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def block_of(part: Any) -> Any:
    """One part of a multimodal result as a content block."""
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text":
        return mcp_types.TextContent(text=str(part.get("text") or ""))
    if kind == "image_url":
        picture = _DATA_URL.fullmatch(str(part.get("image_url", {}).get("url", "")))
        if picture:
            return mcp_types.ImageContent(data=picture[2], mime_type=picture[1])
    if kind == "input_audio":
        sound = part["input_audio"]
        return mcp_types.AudioContent(data=sound["data"], mime_type=f"audio/{sound.get('format', 'wav')}")
    if kind == "resource":
        return mcp_types.EmbeddedResource.model_validate(part)
    return mcp_types.TextContent(text=json.dumps(part, default=str))

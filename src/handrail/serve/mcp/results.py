"""Convert a tool's outcome to an MCP result."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ...core.outcome import Outcome, error_of

if TYPE_CHECKING:
    from mcp_types import CallToolResult

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,(.*)", re.DOTALL)


def answer_of(outcome: Outcome) -> CallToolResult:
    """Text, also as data if it is an object; images and audio as such; a failure is marked as an error."""
    from mcp_types import CallToolResult, TextContent

    if isinstance(outcome, dict):
        return CallToolResult(content=[_block(part) for part in outcome["content"]])
    data = _object_in(outcome)
    return CallToolResult(
        content=[TextContent(text=outcome)], structured_content=data, is_error=error_of(outcome) is not None
    )


def _object_in(text: str) -> dict[str, Any] | None:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _block(part: Any) -> Any:
    from mcp_types import AudioContent, ImageContent, TextContent

    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text":
        return TextContent(text=str(part.get("text") or ""))
    if kind == "image_url":
        picture = _DATA_URL.fullmatch(str(part.get("image_url", {}).get("url", "")))
        if picture:
            return ImageContent(data=picture[2], mime_type=picture[1])
    if kind == "input_audio":
        sound = part["input_audio"]
        return AudioContent(data=sound["data"], mime_type=f"audio/{sound.get('format', 'wav')}")
    return TextContent(text=json.dumps(part, default=str))

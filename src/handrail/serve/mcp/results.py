"""Convert a tool's outcome to an MCP result."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ...base.lazy_import import lazy_import
from ...core.outcome import Outcome, error_of

if TYPE_CHECKING:
    import mcp_types
else:
    mcp_types = lazy_import("mcp_types")

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,(.*)", re.DOTALL)


def answer_of(outcome: Outcome) -> mcp_types.CallToolResult:
    """Text, also as data if it is an object; images and audio as such; a failure is marked as an error."""
    if isinstance(outcome, dict):
        return mcp_types.CallToolResult(content=[_block(part) for part in outcome["content"]])
    data = _object_in(outcome)
    return mcp_types.CallToolResult(
        content=[mcp_types.TextContent(text=outcome)], structured_content=data, is_error=error_of(outcome) is not None
    )


def _object_in(text: str) -> dict[str, Any] | None:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _block(part: Any) -> Any:
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
    return mcp_types.TextContent(text=json.dumps(part, default=str))

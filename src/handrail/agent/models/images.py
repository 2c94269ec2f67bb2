"""Images in results, for providers whose tool messages are text only: they follow in a user message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...types import JsonDict
from .base import Messages


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
        waiting += _named(message, images)
    return [*moved, _following(waiting)] if waiting else moved


def _named(message: Mapping[str, Any], images: list[JsonDict]) -> list[JsonDict]:
    title = {"type": "text", "text": f"From the result of {message.get('name') or 'a tool'}:"}
    return [title, *images] if images else []


def _following(parts: list[JsonDict]) -> JsonDict:
    return {"role": "user", "content": parts}

"""Images in results, for providers whose tool messages are text alone: they follow as a message of the user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...types import JsonDict
from .base import Messages


def images_apart(messages: Messages) -> list[Mapping[str, Any]]:
    """The same conversation, in which no tool message holds an image. Nothing may stand between results of one answer, so the
    images come after the last of them."""
    told: list[Mapping[str, Any]] = []
    waiting: list[JsonDict] = []
    for message in messages:
        if waiting and message["role"] != "tool":
            told.append(_following(waiting))
            waiting = []
        content = message.get("content")
        if message["role"] != "tool" or isinstance(content, str) or content is None:
            told.append(message)
            continue
        images = [part for part in content if part.get("type") != "text"]
        texts = [str(part["text"]) for part in content if part.get("type") == "text"]
        told.append({**message, "content": "\n".join(texts) or "[an image, which follows]"})
        waiting += _named(message, images)
    return [*told, _following(waiting)] if waiting else told


def _named(message: Mapping[str, Any], images: list[JsonDict]) -> list[JsonDict]:
    title = {"type": "text", "text": f"From the result of {message.get('name') or 'a tool'}:"}
    return [title, *images] if images else []


def _following(parts: list[JsonDict]) -> JsonDict:
    return {"role": "user", "content": parts}

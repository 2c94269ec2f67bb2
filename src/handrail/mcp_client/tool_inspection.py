"""Whether a person should look at a server's tool before a model sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..base.prompt_injection import suspicion_of
from .tool_listing import Listed

_MAX_DESCRIPTION = 16_000


def suspicion(tool: Listed) -> str:
    """Why they should. Empty: nothing strange."""
    if len(tool.description) > _MAX_DESCRIPTION:
        return f"its description has {len(tool.description):,} characters"
    for text in _texts(tool):
        found = suspicion_of(text)
        if found:
            return f"its definition {found}"
    return ""


def _texts(tool: Listed) -> Iterator[str]:
    yield tool.name
    yield tool.description
    left: list[Any] = [tool.schema, tool.annotations]
    while left:
        value = left.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            left.extend(value)
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)

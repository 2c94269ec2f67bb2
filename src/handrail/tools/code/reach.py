"""Which tools a script can call."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..entry import ToolEntry

_NOT_FROM_CODE = ("code_execution", "tool_search")


def callable_from_code(entries: Iterable[ToolEntry]) -> list[ToolEntry]:
    """The tools that a script can call: not those that the agent's loop handles, nor those that call others."""
    return [entry for entry in entries if not entry.needs_agent and entry.toolset not in _NOT_FROM_CODE]

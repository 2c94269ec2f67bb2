"""Choose which tools a model's list has room for; the others it finds with `tool_search`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..core.registry import ToolEntry
    from ..types import JsonDict

SEARCH_TOOLSET = "tool_search"
SEARCH_TOOL = "tool_search"
# What a token of a schema has on average; models differ little here.
CHARS_PER_TOKEN = 4
_MAX_SETS_NAMED = 40


def room(context_tokens: int, share: float) -> int:
    """Characters that the definitions may have."""
    return int(context_tokens * share * CHARS_PER_TOKEN)


def fitting(
    entries: Sequence[ToolEntry], definitions: Sequence[JsonDict], *, max_chars: int, uses: Mapping[str, int]
) -> frozenset[str] | None:
    """The names of the tools that stay in the list; None: all of them do.

    Those that were used most stay; of those that were never used, our own before those of servers and plugins, and the short
    before the long.
    """
    sizes = [len(json.dumps(definition, ensure_ascii=False)) for definition in definitions]
    if sum(sizes) <= max_chars:
        return None
    order = sorted(
        range(len(entries)),
        key=lambda n: (-uses.get(entries[n].name, 0), _is_brought(entries[n]), sizes[n], entries[n].name),
    )
    kept, taken = set(), 0
    for number in order:
        if taken + sizes[number] <= max_chars:
            taken += sizes[number]
            kept.add(entries[number].name)
    return frozenset(kept)


def invitation(description: str, deferred: Sequence[ToolEntry]) -> str:
    """The description of `tool_search` for a list without these: what there is to be found."""
    sets = Counter(entry.toolset for entry in deferred).most_common()
    named = [f"{name.removeprefix('mcp-')} ({count})" for name, count in sets[:_MAX_SETS_NAMED]]
    more = f" and {len(sets) - len(named)} more" if len(sets) > len(named) else ""
    return f"{description} Not in your list are {len(deferred)} tools, of: {', '.join(named)}{more}."


def _is_brought(entry: ToolEntry) -> bool:
    return bool(entry.owner) or entry.toolset.startswith("mcp-")

"""Run calls of `tool_search`, `tool_describe` and `tool_call`."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from ...base.suggest import did_you_mean
from ...core.builtin import registry
from ...core.entry import ToolEntry
from ...core.outcome import tool_result
from ...errors import InvalidArguments, ToolFailed, UnknownTool
from ...types import JsonDict, Resources, Toolbox, ToolContext
from .bm25 import index_of

TOOLSET = "tool_search"
_SUMMARY_CHARS = 200


def tool_search(args: JsonDict, *, context: ToolContext, **_: object) -> str:
    entries = _searchable(_toolbox(context))
    found = index_of(entries).search(args["query"], limit=args.get("limit") or 5)
    if not found:
        sets = sorted({entry.toolset for entry in entries})
        hint = f"nothing matches; try other words. There are {len(entries)} tools, of: {', '.join(sets)}"
        return tool_result({"tools": [], "note": hint})
    return tool_result(
        {"tools": [{"name": one.entry.name, "call": _call(one.entry), "does": _summary(one.entry)} for one in found]}
    )


def tool_describe(args: JsonDict, *, context: ToolContext, **_: object) -> str:
    known = {entry.name: entry for entry in _searchable(_toolbox(context))}
    described: list[JsonDict] = []
    for name in args["names"]:
        if name not in known:
            raise _unknown(name, known)
        described.append(known[name].schema)
    return tool_result({"tools": described})


async def tool_call(args: JsonDict, *, context: ToolContext, **_: object) -> Any:
    tools = _toolbox(context)
    name = args["name"]
    known = {entry.name: entry for entry in _searchable(tools)}
    if name not in known:
        raise _unknown(name, known)
    return await tools.acall(name, args.get("arguments") or {})


def resources(args: JsonDict, context: ToolContext) -> Resources:
    """The resources of the called tool. A tool without any runs alone, as does a call for which this raises."""
    entry = next(entry for entry in _toolbox(context).entries() if entry.name == args["name"])
    if entry.resources is None:
        if entry.read_only:
            return Resources()
        raise InvalidArguments(f"{entry.name} may touch anything")
    arguments = args.get("arguments") or {}
    takes_context = len(inspect.signature(entry.resources).parameters) > 1
    touched: Resources = entry.resources(arguments, context) if takes_context else entry.resources(arguments)
    return touched


def _toolbox(context: ToolContext) -> Toolbox:
    if context.tools is None:
        raise ToolFailed("this runtime lets no tool call others; use the runtime's own dispatch")
    return context.tools


def _searchable(tools: Toolbox) -> tuple[ToolEntry, ...]:
    return tuple(entry for entry in tools.entries() if entry.toolset != TOOLSET)


def _unknown(name: str, known: dict[str, ToolEntry]) -> Exception:
    own = registry.get_entry(name)
    if own is not None and own.toolset == TOOLSET:
        return InvalidArguments(f"call {name} itself, not by another tool", argument="name")
    return UnknownTool(f"there is no tool {name[:100]!r}; {did_you_mean(name, known)}, or search for it")


def _call(entry: ToolEntry) -> str:
    """`read_file(path, offset?)`."""
    schema = entry.schema["parameters"]
    required: Sequence[str] = schema.get("required", ())
    names = sorted(schema.get("properties", {}), key=lambda name: name not in required)
    return f"{entry.name}({', '.join(name if name in required else name + '?' for name in names)})"


def _summary(entry: ToolEntry) -> str:
    text = " ".join(entry.description.split())
    return text if len(text) <= _SUMMARY_CHARS else f"{text[:_SUMMARY_CHARS].rsplit(' ', 1)[0]} ..."

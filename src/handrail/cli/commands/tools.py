"""List the tools, and whether each can be used now.

For a tool that cannot be used, it says why, and what would change that.

Examples:
  handrail tools
  handrail tools --toolset file --toolset web
  handrail tools --json | jq -r '.[] | select(.available) | .name'
"""

import shutil
import sys

from ...app import Handrail
from ...types import JsonDict, Unavailable
from ..call_text import shortened
from ..options import Json, Toolsets
from ..output import as_typed, colours, emit_table, note, paint, visible
from ..runtime import open_runtime

_NOTHING = Unavailable("")
_EMPTY = "No tools. `handrail toolsets` lists the sets there are."
_COLUMNS = 32  # of a row, before the names of its tools


def tools(toolset: Toolsets = None, as_json: Json = False) -> None:
    app = open_runtime()
    app.await_toolsets(toolset)
    listed = _listed(app, toolset)
    if not toolset and app.mcp is not None:
        for server, why in app.mcp.absent().items():
            note(f"handrail: MCP server {server}: {why}")
    if sys.stdout.isatty() and not (toolset or as_json):
        _emit_sets(listed)
    else:
        rows = [*map(_row, listed)]
        emit_table(("TOOLSET", "TOOL", "STATUS"), rows, listed, as_json=as_json, wide=2, empty=_EMPTY)


def _listed(app: Handrail, toolsets: list[str] | None) -> list[JsonDict]:
    registry = app.runtime.registry
    config = app.config.tools
    offered = set(app.toolsets.select(config.enabled_toolsets, config.disabled_toolsets))
    entries = [registry.get_entry(name) for name in app.toolsets.select(toolsets)]
    missing = registry.unavailable_tools()
    described = [
        {
            "name": entry.name,
            "toolset": entry.toolset,
            "emoji": registry.get_emoji(entry.name),
            "description": entry.description,
            "available": entry.name not in missing,
            "reason": missing.get(entry.name, _NOTHING).reason,
            "fix": missing.get(entry.name, _NOTHING).fix,
            "offered": entry.name in offered,
            "read_only": entry.read_only,
            "needs_agent": entry.needs_agent,
            "timeout": entry.timeout,
            "requires_env": list(entry.requires_env),
        }
        for entry in entries
        if entry is not None
    ]
    return sorted(described, key=lambda tool: (tool["toolset"], tool["name"]))


def _emit_sets(listed: list[JsonDict]) -> None:
    """One row for the tools of a set that are all ready, all switched off, or wait for the same fix."""
    groups: dict[object, list[JsonDict]] = {}
    for tool in listed:
        groups.setdefault((tool["toolset"], tool["available"], tool["offered"], tool["fix"]), []).append(tool)
    rows = []
    for (first, *others), names in ((each, ", ".join(tool["name"] for tool in each)) for each in groups.values()):
        mark, style, why = _status(first)
        room = max(20, shutil.get_terminal_size().columns - _COLUMNS)
        painted = paint(f"{mark} {len(others) + 1}", style, on=colours(sys.stdout))
        rows.append((first["toolset"], painted, why if not first["available"] else shortened(names, room)))
    emit_table(("TOOLSET", "TOOLS", ""), rows, wide=2, empty=_EMPTY)
    note(as_typed("✓ ready  – switched off  ✗ cannot be used; `handrail tools --toolset NAME` lists each tool"))


def _row(tool: JsonDict) -> tuple[str, str, str]:
    # A pipe gets the bare name, which programs can use, and columns that line up.
    name = f"{tool['emoji']} {tool['name']}" if sys.stdout.isatty() else tool["name"]
    mark, style, why = _status(tool)
    return tool["toolset"], name, paint(f"{mark} {why}", style, on=colours(sys.stdout))


def _status(tool: JsonDict) -> tuple[str, str, str]:
    """Its mark, the colour of that, and what it means."""
    if not tool["available"]:
        return "✗", "yellow", visible(as_typed(f"{tool['reason']}; {tool['fix']}" if tool["fix"] else tool["reason"]))
    if not tool["offered"]:
        return "–", "dim", "switched off by tools.enabled_toolsets or .disabled_toolsets"
    return "✓", "green", "ready"

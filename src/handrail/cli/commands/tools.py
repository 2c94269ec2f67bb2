"""List the tools, and whether each can be used now.

For a tool that cannot be used, it says why, and what would change that.

\b
Examples:
  handrail tools
  handrail tools --toolset file --toolset web
  handrail tools --json | jq -r '.[] | select(.available) | .name'
"""

from __future__ import annotations

import sys

from ...app import Handrail
from ...types import JsonDict, Unavailable
from .. import options
from ..output import as_typed, colours, emit_listing, note, paint, visible
from ..runtime import open_runtime

_NOTHING = Unavailable("")


def tools(toolset: options.Toolsets = None, as_json: options.Json = False) -> None:
    app = open_runtime()
    app.await_toolsets(toolset)
    listed = _listed(app, toolset)
    if not toolset and app.mcp is not None:
        for server, why in app.mcp.absent().items():
            note(f"handrail: MCP server {server}: {why}")
    rows = [*map(_row, _by_fix(listed) if sys.stdout.isatty() and not toolset else listed)]
    empty = "No tools. `handrail toolsets` lists the sets there are."
    emit_listing(listed, ("TOOLSET", "TOOL", "STATUS"), rows, as_json=as_json, wide=2, empty=empty)


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


def _by_fix(listed: list[JsonDict]) -> list[JsonDict]:
    """The tools, with one line for those of a set that the same thing would make usable."""
    groups: dict[object, list[JsonDict]] = {}
    for tool in listed:
        groups.setdefault((tool["toolset"], tool["fix"]) if tool["fix"] else tool["name"], []).append(tool)
    return [
        first if not others else {**first, "name": f"{len(others) + 1} tools"} for first, *others in groups.values()
    ]


def _row(tool: JsonDict) -> tuple[str, str, str]:
    painted = colours(sys.stdout)
    # A pipe gets the bare name, which programs can use, and columns that line up.
    name = f"{tool['emoji']} {tool['name']}" if sys.stdout.isatty() else tool["name"]
    if not tool["available"]:
        fix = f"; {tool['fix']}" if tool["fix"] else ""
        status = paint(visible(f"✗ {tool['reason']}"), "yellow", on=painted) + visible(as_typed(fix))
    elif not tool["offered"]:
        status = paint("– switched off by tools.enabled_toolsets or .disabled_toolsets", "dim", on=painted)
    else:
        status = paint("✓ ready", "green", on=painted)
    return tool["toolset"], name, status

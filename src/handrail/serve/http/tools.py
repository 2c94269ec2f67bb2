"""The tools there are: whether each can be used, what it needs, and what a model is told of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ...types import JsonDict
from ..endpoint import Asked, Endpoint
from .shapes import ANYTHING, FLAG, TEXT, loose, many, record

if TYPE_CHECKING:
    from ...app import Handrail

FORMATS = ("openai", "responses", "anthropic", "gemini", "mcp")


async def tools(asked: Asked) -> JsonDict:
    """Every tool, with what it lacks to be used."""
    return {"tools": await asyncio.to_thread(_listed, asked.served.here)}


def _listed(here: Handrail) -> list[JsonDict]:
    registry = here.runtime.registry
    here.toolsets.names()  # tools of MCP servers come now
    missing = registry.unavailable_tools()
    offered = here.definitions.names(*here.chosen_toolsets())
    return [
        {
            "name": entry.name,
            "toolset": entry.toolset,
            "emoji": entry.emoji,
            "description": entry.description,
            "parameters": entry.contract.schema(),
            "available": entry.name not in missing,
            "reason": missing[entry.name].reason if entry.name in missing else "",
            "fix": missing[entry.name].fix if entry.name in missing else "",
            "offered": entry.name in offered,
        }
        for entry in registry.entries()
    ]


async def definitions(asked: Asked) -> JsonDict:
    """What a model may be shown now, in the form that its provider wants."""
    here, wanted = asked.served.here, asked.query.get("toolset")
    enabled, disabled = here.chosen_toolsets()
    chosen = [wanted] if wanted else enabled
    found = await asyncio.to_thread(
        lambda: here.definitions.list(chosen, disabled, quiet=True, format=asked.query["format"])
    )
    return {"definitions": found}


async def toolsets(asked: Asked) -> JsonDict:
    """The named bundles of tools."""
    here = asked.served.here
    names = await asyncio.to_thread(here.toolsets.names)
    return {"toolsets": [{"name": name, "tools": sorted(here.toolsets.resolve(name))} for name in names]}


_TOOL = loose(name=TEXT, toolset=TEXT, description=TEXT, parameters=ANYTHING, available=FLAG, reason=TEXT, fix=TEXT)

ENDPOINTS = (
    Endpoint("GET", "/v1/tools", tools, answer=record(tools=many(_TOOL))),
    Endpoint(
        "GET",
        "/v1/definitions",
        definitions,
        query={
            "toolset": {"type": "string", "description": "One toolset instead of those that are enabled."},
            "format": {"type": "string", "enum": list(FORMATS), "default": "openai"},
        },
        answer=record(definitions=many(ANYTHING)),
    ),
    Endpoint("GET", "/v1/toolsets", toolsets, answer=record(toolsets=many(record(name=TEXT, tools=many(TEXT))))),
)

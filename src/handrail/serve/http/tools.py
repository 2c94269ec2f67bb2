"""All tools: whether each can be used, what it needs, and its definition for a model."""

from __future__ import annotations

import asyncio
from typing import get_args

from ...app import Handrail
from ...runtime.provider_formats import Format
from ...types import JsonDict
from ..endpoint import Endpoint, RequestContext
from .shapes import ANYTHING, FLAG, TEXT, loose, many, record


async def tools(context: RequestContext) -> JsonDict:
    """Every tool, with what is missing to use it."""
    return {"tools": await asyncio.to_thread(_listed, context.served.app)}


def _listed(app: Handrail) -> list[JsonDict]:
    registry = app.runtime.registry
    app.toolsets.names()  # connects to the MCP servers
    missing = registry.unavailable_tools()
    offered = app.definitions.names(*app.chosen_toolsets())
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


async def definitions(context: RequestContext) -> JsonDict:
    """The definitions for a model, in the format of its provider."""
    app, wanted = context.served.app, context.query.get("toolset")
    enabled, disabled = app.chosen_toolsets()
    chosen = [wanted] if wanted else enabled
    found = await asyncio.to_thread(
        lambda: app.definitions.list(chosen, disabled, quiet=True, format=context.query["format"])
    )
    return {"definitions": found}


async def toolsets(context: RequestContext) -> JsonDict:
    """The named bundles of tools."""
    app = context.served.app
    names = await asyncio.to_thread(app.toolsets.names)
    return {"toolsets": [{"name": name, "tools": sorted(app.toolsets.resolve(name))} for name in names]}


_TOOL = loose(name=TEXT, toolset=TEXT, description=TEXT, parameters=ANYTHING, available=FLAG, reason=TEXT, fix=TEXT)

ENDPOINTS = (
    Endpoint("GET", "/v1/tools", tools, answer=record(tools=many(_TOOL))),
    Endpoint(
        "GET",
        "/v1/definitions",
        definitions,
        query={
            "toolset": {"type": "string", "description": "One toolset instead of the enabled ones."},
            "format": {"type": "string", "enum": list(get_args(Format)), "default": "openai"},
        },
        answer=record(definitions=many(ANYTHING)),
    ),
    Endpoint("GET", "/v1/toolsets", toolsets, answer=record(toolsets=many(record(name=TEXT, tools=many(TEXT))))),
)

"""All tools: whether each can be used, what it needs, and its definition for a model."""

from typing import get_args

from ...runtime.provider_formats import Format
from ...types import JsonDict, Unavailable
from ..endpoint import Endpoint, RequestContext
from .shapes import ANYTHING, FLAG, TEXT, loose, many, record

_TOOL = loose(name=TEXT, toolset=TEXT, description=TEXT, parameters=ANYTHING, available=FLAG, reason=TEXT, fix=TEXT)
_TOOLSET = {"type": "string", "description": "One toolset instead of the enabled ones."}
_FORMAT = {"type": "string", "enum": list(get_args(Format)), "default": "openai"}
_NOTHING = Unavailable("", "")


@Endpoint("GET", "/v1/tools", record(tools=many(_TOOL)))
def tools(context: RequestContext) -> JsonDict:
    """Every tool, with what is missing to use it."""
    app, registry = context.served.app, context.served.app.runtime.registry
    app.toolsets.names()  # connects to the MCP servers
    missing, offered = registry.unavailable_tools(), app.definitions.names(*app.chosen_toolsets())
    found = []
    for entry in registry.entries():
        lacks = missing.get(entry.name, _NOTHING)
        tool: JsonDict = {name: getattr(entry, name) for name in ("name", "toolset", "emoji", "description")}
        tool |= {"parameters": entry.contract.schema(), "available": entry.name not in missing}
        found.append({**tool, "reason": lacks.reason, "fix": lacks.fix, "offered": entry.name in offered})
    return {"tools": found}


@Endpoint("GET", "/v1/definitions", record(definitions=many(ANYTHING)), toolset=_TOOLSET, format=_FORMAT)
def definitions(context: RequestContext) -> JsonDict:
    """The definitions for a model, in the format of its provider."""
    app, wanted = context.served.app, context.query.get("toolset")
    enabled, disabled = app.chosen_toolsets()
    chosen = [wanted] if wanted else enabled
    return {"definitions": app.definitions.list(chosen, disabled, quiet=True, format=context.query["format"])}


@Endpoint("GET", "/v1/toolsets", record(toolsets=many(record(name=TEXT, tools=many(TEXT)))))
def toolsets(context: RequestContext) -> JsonDict:
    """The named bundles of tools."""
    known = context.served.app.toolsets
    return {"toolsets": [{"name": name, "tools": sorted(known.resolve(name))} for name in known.names()]}

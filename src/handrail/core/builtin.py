"""The built-in tools, declared once per process: each file of a tool family registers here, and every runtime copies them.

`tool_schema`, with `text`, `integer`, `number`, `flag` and `texts` for its arguments, writes what a tool registers; `family`
what the tools of one toolset register alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..types import JsonDict
from .registry import ToolRegistry

registry = ToolRegistry()


def tool_schema(description: str, required: Sequence[str] = (), /, **properties: JsonDict) -> JsonDict:
    """The schema of a tool: what the model is told of it, and its arguments, each in JSON Schema."""
    parameters: JsonDict = {"type": "object", "properties": properties}
    return {
        "description": description,
        "parameters": {**parameters, "required": [*required]} if required else parameters,
    }


def family(toolset: str, calls: str, **shared: Any) -> Callable[..., JsonDict]:
    """A function for `registry.register(**tool("its_name", ...))`: it takes a tool's name and then what `tool_schema` takes.

    The handler is the function of that name in the module `calls`; `shared` is what else each tool of the family registers.
    """

    def tool(name: str, description: str, required: Sequence[str] = (), /, **properties: JsonDict) -> JsonDict:
        schema = tool_schema(description, required, **properties)
        return {"name": name, "toolset": toolset, "schema": schema, "handler": f"{calls}:{name}", **shared}

    return tool


def text(description: str, **limits: Any) -> JsonDict:
    return {"type": "string", **limits, "description": description}


def integer(description: str, **limits: Any) -> JsonDict:
    return {"type": "integer", **limits, "description": description}


def number(description: str, **limits: Any) -> JsonDict:
    return {"type": "number", **limits, "description": description}


def flag(description: str) -> JsonDict:
    """A switch that is off unless the model turns it on."""
    return {"type": "boolean", "default": False, "description": description}


def texts(description: str, *, min_chars: int = 0, **limits: Any) -> JsonDict:
    """A list of texts."""
    items = {"type": "string", "minLength": min_chars} if min_chars else {"type": "string"}
    return {"type": "array", "items": items, **limits, "description": description}

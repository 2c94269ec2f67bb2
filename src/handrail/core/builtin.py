"""The built-in tools, declared once per process: each file of a tool family registers here, and every runtime copies them.

`tool_schema`, with `text`, `integer`, `number` and `flag` for its arguments, writes what a tool registers.
"""

from __future__ import annotations

from collections.abc import Sequence
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


def text(description: str, **limits: Any) -> JsonDict:
    return {"type": "string", **limits, "description": description}


def integer(description: str, **limits: Any) -> JsonDict:
    return {"type": "integer", **limits, "description": description}


def number(description: str, **limits: Any) -> JsonDict:
    return {"type": "number", **limits, "description": description}


def flag(description: str) -> JsonDict:
    """A switch that is off unless the model turns it on."""
    return {"type": "boolean", "default": False, "description": description}

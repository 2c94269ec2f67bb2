"""Write a tool's definition the way each provider takes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from ..types import JsonDict
from .schema_repair import for_gemini, repair

Format = Literal["openai", "responses", "anthropic", "gemini", "mcp"]


def _openai(name: str, description: str, parameters: JsonDict, _: bool) -> JsonDict:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _responses(name: str, description: str, parameters: JsonDict, _: bool) -> JsonDict:
    # Strict is this API's default, and refuses every schema with an optional argument.
    return {"type": "function", "name": name, "description": description, "parameters": parameters, "strict": False}


def _anthropic(name: str, description: str, parameters: JsonDict, _: bool) -> JsonDict:
    return {"name": name, "description": description, "input_schema": parameters}


def _gemini_declaration(name: str, description: str, parameters: JsonDict, _: bool) -> JsonDict:
    declaration: JsonDict = {"name": name, "description": description}
    if parameters.get("properties"):
        declaration["parameters"] = parameters
    return declaration


def _mcp(name: str, description: str, parameters: JsonDict, read_only: bool) -> JsonDict:
    annotations = {"readOnlyHint": read_only}
    return {"name": name, "description": description, "inputSchema": parameters, "annotations": annotations}


class Writer(NamedTuple):
    """One provider's way of writing: its parameters, and the definition around them."""

    parameters: Callable[[JsonDict], JsonDict]
    definition: Callable[[str, str, JsonDict, bool], JsonDict]


_WRITERS: dict[Format, Writer] = {
    "openai": Writer(repair, _openai),
    "responses": Writer(repair, _responses),
    "anthropic": Writer(repair, _anthropic),
    "gemini": Writer(for_gemini, _gemini_declaration),
    "mcp": Writer(repair, _mcp),
}


def writer(format: Format) -> Writer:  # noqa: A002  what it is
    return _WRITERS[format]

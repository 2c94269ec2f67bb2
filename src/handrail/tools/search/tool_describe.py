"""The tool `tool_describe`: read the full definition of tools that were found."""

from __future__ import annotations

from ...core.builtin import registry

registry.register(
    name="tool_describe",
    toolset="tool_search",
    schema={
        "description": "The full description and arguments of tools that `tool_search` found.",
        "parameters": {
            "type": "object",
            "properties": {
                "names": {
                    "type": "array",
                    "items": {"type": "string"},
                    "minItems": 1,
                    "maxItems": 10,
                    "description": "Names of the tools.",
                }
            },
            "required": ["names"],
        },
    },
    handler="handrail.tools.search.calls:tool_describe",
    emoji="📖",
    read_only=True,
    example={"names": ["search_files"]},
)

"""The tool `tool_describe`: read the full definition of tools that were found."""

from ...core.builtin import registry, tool_schema

registry.register(
    name="tool_describe",
    toolset="tool_search",
    schema=tool_schema(
        "The full description and arguments of tools that `tool_search` found.",
        ("names",),
        names={
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "maxItems": 10,
            "description": "Names of the tools.",
        },
    ),
    handler="handrail.tools.search.calls:tool_describe",
    emoji="📖",
    read_only=True,
    example={"names": ["search_files"]},
)

"""The tool `tool_describe`: what such a tool takes."""

from ...core.builtin import family, registry, texts

_tool = family("tool_search", "handrail.tools.search.calls")

registry.register(
    **_tool(
        "tool_describe",
        "The full description and arguments of tools that `tool_search` found.",
        ("names",),
        names=texts("Names of the tools.", minItems=1, maxItems=10),
    ),
    emoji="📖",
    read_only=True,
    example={"names": ["search_files"]},
)

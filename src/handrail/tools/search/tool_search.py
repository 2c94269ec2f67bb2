"""The tool `tool_search`: find tools that the list has no room for."""

from ...core.builtin import integer, registry, text, tool_schema

registry.register(
    name="tool_search",
    toolset="tool_search",
    schema=tool_schema(
        "Find tools that are not in your list, by what they do: `send an invoice`, `github open issues`. "
        "Gives names with their arguments, best first; call one with `tool_call`.",
        ("query",),
        query=text("What the tool should do, in a few words.", minLength=1),
        limit=integer("Most tools to show.", minimum=1, maximum=50, default=5),
    ),
    handler="handrail.tools.search.calls:tool_search",
    emoji="🔎",
    read_only=True,
    toolset_description="find tools that are not listed",
    example={"query": "look for text in files"},
)

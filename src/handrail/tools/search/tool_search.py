"""The tool `tool_search`: find tools that are not in the list."""

from ...core.builtin import family, integer, registry, text

_tool = family("tool_search", "handrail.tools.search.calls")

registry.register(
    **_tool(
        "tool_search",
        "Find tools that are not in your list, by what they do: `send an invoice`, `github open issues`. "
        "Gives names with their arguments, best first; call one with `tool_call`.",
        ("query",),
        query=text("What the tool should do, in a few words.", minLength=1),
        limit=integer("Most tools to show.", minimum=1, maximum=50, default=5),
    ),
    emoji="🔎",
    read_only=True,
    toolset_description="find tools that are not listed",
    example={"query": "look for text in files"},
)

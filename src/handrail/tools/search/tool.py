"""The tools `tool_call`, `tool_describe` and `tool_search`: find tools that are not in the list, and call them."""

from ...core.builtin import family, integer, registry, text, texts

_tool = family("tool_search", "handrail.tools.search.calls")
registry.register(
    **_tool(
        "tool_call",
        "Call a tool that is not in your list. The answer is the tool's own.",
        ("name",),
        name=text("The tool's name, as `tool_search` gives it."),
        arguments={"type": "object", "description": "What the tool takes.", "additionalProperties": True},
    ),
    is_async=True,
    emoji="🧰",
    # The called tool has its own limits of length and time.
    max_result_size_chars=float("inf"),
    resources="handrail.tools.search.calls:resources",
    example={"name": "search_files", "arguments": {"pattern": "TODO"}},
)
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

"""The tool `web_search`: find pages on the web."""

from ...core.builtin import integer, registry, text, tool_schema

registry.register(
    name="web_search",
    toolset="web",
    schema=tool_schema(
        "Search the web: titles, addresses and snippets. Then read what looks right with `web_extract`.",
        ("query",),
        query=text("What to look for, as you would type it."),
        limit=integer("Results at most (8).", minimum=1, maximum=20),
    ),
    handler="handrail.tools.web.calls:web_search",
    is_async=True,
    check_fn="handrail.tools.web.search:can_search",
    emoji="🔎",
    timeout=90,
    read_only=True,
    toolset_description="search the web and read pages",
    example={"query": "handrail climbing", "limit": 3},
)

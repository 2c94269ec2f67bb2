"""The tool `web_search`: find pages."""

from __future__ import annotations

from ...core.builtin import family, integer, registry, text

_tool = family("web", "handrail.tools.web.calls", is_async=True, read_only=True)

registry.register(
    **_tool(
        "web_search",
        "Search the web: titles, addresses and snippets. Then read what looks right with `web_extract`.",
        ("query",),
        query=text("What to look for, as you would type it."),
        limit=integer("Results at most (8).", minimum=1, maximum=20),
    ),
    check_fn="handrail.tools.web.search:can_search",
    emoji="🔎",
    timeout=90,
    toolset_description="search the web and read pages",
    example={"query": "handrail climbing", "limit": 3},
)

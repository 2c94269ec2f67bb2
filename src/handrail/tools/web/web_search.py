"""The tool `web_search`: find pages on the web."""

from __future__ import annotations

from ...core.builtin import registry

registry.register(
    name="web_search",
    toolset="web",
    schema={
        "description": "Search the web: titles, addresses and snippets. Then read what looks right with `web_extract`.",
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to look for, as you would type it."},
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 20,
                    "description": "Results at most (8).",
                },
            },
            "required": ["query"],
        },
    },
    handler="handrail.tools.web.calls:web_search",
    is_async=True,
    check_fn="handrail.tools.web.search:can_search",
    emoji="🔎",
    timeout=90,
    read_only=True,
    toolset_description="search the web and read pages",
    example={"query": "handrail climbing", "limit": 3},
)

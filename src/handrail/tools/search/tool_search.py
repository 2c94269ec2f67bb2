"""The tool `tool_search`: find tools that the list has no room for."""

from __future__ import annotations

from ...core.builtin import registry

registry.register(
    name="tool_search",
    toolset="tool_search",
    schema={
        "description": "Find tools that are not in your list, by what they do: `send an invoice`, `github open issues`. "
        "Gives names with their arguments, best first; call one with `tool_call`.",
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "description": "What the tool should do, in a few words."},
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 50,
                    "default": 5,
                    "description": "Most tools to show.",
                },
            },
            "required": ["query"],
        },
    },
    handler="handrail.tools.search.calls:tool_search",
    emoji="🔎",
    read_only=True,
    toolset_description="find tools that are not listed",
    example={"query": "look for text in files"},
)

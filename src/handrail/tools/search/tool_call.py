"""The tool `tool_call`: call a tool that is not in the list."""

from ...core.builtin import registry, text, tool_schema

registry.register(
    name="tool_call",
    toolset="tool_search",
    schema=tool_schema(
        "Call a tool that is not in your list. The answer is the tool's own.",
        ("name",),
        name=text("The tool's name, as `tool_search` gives it."),
        arguments={"type": "object", "description": "What the tool takes.", "additionalProperties": True},
    ),
    handler="handrail.tools.search.calls:tool_call",
    is_async=True,
    emoji="🧰",
    # The called tool has its own limits of length and time.
    max_result_size_chars=float("inf"),
    resources="handrail.tools.search.calls:resources",
    example={"name": "search_files", "arguments": {"pattern": "TODO"}},
)

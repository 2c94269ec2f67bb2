"""The tool `tool_call`: call one."""

from ...core.builtin import family, registry, text

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

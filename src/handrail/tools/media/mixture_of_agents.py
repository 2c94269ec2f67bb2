"""The tool `mixture_of_agents`: ask several models, and merge their answers."""

from ...core.builtin import registry, text, tool_schema

registry.register(
    name="mixture_of_agents",
    toolset="moa",
    schema=tool_schema(
        "Put a hard question to several models at once and get one merged answer. Slow and costly: for what one model alone "
        "gets wrong.",
        ("user_prompt",),
        user_prompt=text("The question, with all that is needed to answer it: they see nothing else.", minLength=1),
    ),
    handler="handrail.tools.media.calls:mixture_of_agents",
    check_fn="handrail.media:check_mixture",
    is_async=True,
    emoji="🧠",
    timeout=900,
    read_only=True,
    toolset_description="ask several models",
    example={"user_prompt": "Which of two sorted lists has the larger median? Give an algorithm and prove its bound."},
)

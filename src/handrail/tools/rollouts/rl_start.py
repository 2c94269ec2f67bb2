"""The tool `rl_start`: start a planned run."""

from ...core.builtin import registry, text, tool_schema

registry.register(
    name="rl_start",
    toolset="rl",
    schema=tool_schema(
        "Start a planned run in the background. The user is asked first.",
        ("run_id",),
        run_id=text("The run's id."),
    ),
    handler="handrail.tools.rollouts.calls:rl_start",
    check_fn="handrail.tools.rollouts:check",
    emoji="🏋️",
    timeout=120,
    actions="handrail.tools.rollouts.calls:actions",
    example=["rl_configure", {"run_id": "$run_id"}],
)

"""The tool `rl_stop`: stop a run."""

from ...core.builtin import registry, text, tool_schema

registry.register(
    name="rl_stop",
    toolset="rl",
    schema=tool_schema(
        "Stop a run of rollouts. What was scored is kept.",
        ("run_id",),
        run_id=text("The run's id."),
    ),
    handler="handrail.tools.rollouts.calls:rl_stop",
    check_fn="handrail.tools.rollouts:check",
    emoji="🏋️",
    timeout=120,
    example=["rl_start", {"run_id": "$run_id"}],
)

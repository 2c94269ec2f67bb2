"""The tool `rl_status`: the progress of runs."""

from ...core.builtin import registry, text, tool_schema

registry.register(
    name="rl_status",
    toolset="rl",
    schema=tool_schema(
        "The state of a run of rollouts; without run_id the latest runs.",
        run_id=text("The run's id."),
    ),
    handler="handrail.tools.rollouts.calls:rl_status",
    check_fn="handrail.tools.rollouts:check",
    emoji="🏋️",
    timeout=120,
    example=["rl_start", {"run_id": "$run_id"}],
)

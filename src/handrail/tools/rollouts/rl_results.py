"""The tool `rl_results`: the rewards and trajectories of a run."""

from ...core.builtin import registry, text, tool_schema

registry.register(
    name="rl_results",
    toolset="rl",
    schema=tool_schema(
        "The rewards of a run, and a JSONL file with its trajectories.",
        ("run_id",),
        run_id=text("The run's id."),
        format=text("Of the file.", enum=["sharegpt", "messages"]),
    ),
    handler="handrail.tools.rollouts.calls:rl_results",
    check_fn="handrail.tools.rollouts:check",
    emoji="🏋️",
    timeout=120,
    example=["rl_stop", {"run_id": "$run_id", "format": "messages"}],
)

"""The tool `rl_start`: start a planned run."""

from __future__ import annotations

from ...core.builtin import registry

registry.register(
    name="rl_start",
    toolset="rl",
    schema={
        "description": "Start a planned run in the background. The user is asked first.",
        "parameters": {
            "type": "object",
            "properties": {"run_id": {"type": "string", "description": "The run's id."}},
            "required": ["run_id"],
        },
    },
    handler="handrail.tools.rollouts.calls:rl_start",
    check_fn="handrail.tools.rollouts:check",
    emoji="🏋️",
    timeout=120,
    actions="handrail.tools.rollouts.calls:actions",
    example=["rl_configure", {"run_id": "$run_id"}],
)

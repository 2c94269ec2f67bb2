"""The tool `rl_stop`: stop a run."""

from __future__ import annotations

from ...core.builtin import registry

registry.register(
    name="rl_stop",
    toolset="rl",
    schema={
        "description": "Stop a run of rollouts. What was scored is kept.",
        "parameters": {
            "type": "object",
            "properties": {"run_id": {"type": "string", "description": "The run's id."}},
            "required": ["run_id"],
        },
    },
    handler="handrail.tools.rollouts.calls:rl_stop",
    check_fn="handrail.tools.rollouts:check",
    emoji="🏋️",
    timeout=120,
    example=["rl_start", {"run_id": "$run_id"}],
)

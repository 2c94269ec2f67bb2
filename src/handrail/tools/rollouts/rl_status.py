"""The tool `rl_status`: the progress of runs."""

from __future__ import annotations

from ...core.builtin import registry

registry.register(
    name="rl_status",
    toolset="rl",
    schema={
        "description": "The state of a run of rollouts; without run_id the latest runs.",
        "parameters": {"type": "object", "properties": {"run_id": {"type": "string", "description": "The run's id."}}},
    },
    handler="handrail.tools.rollouts.calls:rl_status",
    check_fn="handrail.tools.rollouts:check",
    emoji="🏋️",
    timeout=120,
    example=["rl_start", {"run_id": "$run_id"}],
)

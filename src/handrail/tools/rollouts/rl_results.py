"""The tool `rl_results`: the rewards and trajectories of a run."""

from __future__ import annotations

from ...core.builtin import registry

registry.register(
    name="rl_results",
    toolset="rl",
    schema={
        "description": "The rewards of a run, and a JSONL file with its trajectories.",
        "parameters": {
            "type": "object",
            "properties": {
                "run_id": {"type": "string", "description": "The run's id."},
                "format": {"type": "string", "enum": ["sharegpt", "messages"], "description": "Of the file."},
            },
            "required": ["run_id"],
        },
    },
    handler="handrail.tools.rollouts.calls:rl_results",
    check_fn="handrail.tools.rollouts:check",
    emoji="🏋️",
    timeout=120,
    example=["rl_stop", {"run_id": "$run_id", "format": "messages"}],
)

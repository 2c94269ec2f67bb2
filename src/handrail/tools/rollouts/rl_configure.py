"""The tool `rl_configure`: plan a run of rollouts."""

from __future__ import annotations

from ...core.builtin import registry
from ...types import JsonDict


def _count(description: str, maximum: int) -> JsonDict:
    return {"type": "integer", "minimum": 1, "maximum": maximum, "description": description}


registry.register(
    name="rl_configure",
    toolset="rl",
    schema={
        "description": "Plan a run of rollouts: agents that each try one task of an environment. Gives a run_id.",
        "parameters": {
            "type": "object",
            "properties": {
                "environment": {"type": "string", "description": "Its name."},
                "run_id": {"type": "string", "description": "To change a planned run."},
                "model": {"type": "string", "description": "Default: the configured one."},
                "backend": {"type": "string", "description": "Where they run: local (a sandbox), docker..."},
                "toolsets": {"type": "array", "items": {"type": "string"}, "description": "What they may use."},
                "tasks": _count("Only so many tasks.", 100_000),
                "per_task": _count("Rollouts of each task (1).", 1000),
                "parallel": _count("At once (2).", 1000),
                "model_calls": _count("For each, at most (30).", 1000),
                "timeout": {"type": "number", "exclusiveMinimum": 0, "description": "Seconds for each (600)."},
            },
        },
    },
    handler="handrail.tools.rollouts.calls:rl_configure",
    check_fn="handrail.tools.rollouts:check",
    emoji="🏋️",
    timeout=120,
    example={"environment": "sums", "per_task": 2, "parallel": 2, "timeout": 300},
)

"""The tool `rl_configure`: plan a run of rollouts."""

from __future__ import annotations

from ...core.builtin import integer, number, registry, text, tool_schema
from ...types import JsonDict


def _count(description: str, maximum: int) -> JsonDict:
    return integer(description, minimum=1, maximum=maximum)


registry.register(
    name="rl_configure",
    toolset="rl",
    schema=tool_schema(
        "Plan a run of rollouts: agents that each try one task of an environment. Gives a run_id.",
        environment=text("Its name."),
        run_id=text("To change a planned run."),
        model=text("Default: the configured one."),
        backend=text("Where they run: local (a sandbox), docker..."),
        toolsets={"type": "array", "items": {"type": "string"}, "description": "What they may use."},
        tasks=_count("Only so many tasks.", 100_000),
        per_task=_count("Rollouts of each task (1).", 1000),
        parallel=_count("At once (2).", 1000),
        model_calls=_count("For each, at most (30).", 1000),
        timeout=number("Seconds for each (600).", exclusiveMinimum=0),
    ),
    handler="handrail.tools.rollouts.calls:rl_configure",
    check_fn="handrail.tools.rollouts:check",
    emoji="🏋️",
    timeout=120,
    example={"environment": "sums", "per_task": 2, "parallel": 2, "timeout": 300},
)

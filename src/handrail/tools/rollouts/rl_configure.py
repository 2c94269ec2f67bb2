"""The tool `rl_configure`: plan a run of rollouts."""

from ...core.builtin import integer, number, registry, text, texts
from . import tool

registry.register(
    **tool(
        "rl_configure",
        "Plan a run of rollouts: agents that each try one task of an environment. Gives a run_id.",
        environment=text("Its name."),
        run_id=text("To change a planned run."),
        model=text("Default: the configured one."),
        backend=text("Where they run: local (a sandbox), docker..."),
        toolsets=texts("What they may use."),
        tasks=integer("Only so many tasks.", minimum=1, maximum=100_000),
        per_task=integer("Rollouts of each task (1).", minimum=1, maximum=1000),
        parallel=integer("At once (2).", minimum=1, maximum=1000),
        model_calls=integer("For each, at most (30).", minimum=1, maximum=1000),
        timeout=number("Seconds for each (600).", exclusiveMinimum=0),
    ),
    example={"environment": "sums", "per_task": 2, "parallel": 2, "timeout": 300},
)

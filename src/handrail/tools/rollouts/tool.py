"""The tools `rl_*`: agents try tasks with a reward function."""

from ...core.availability import missing, usable_unless
from ...core.builtin import family, integer, number, registry, text, texts
from ...types import Unavailable

_tool = family(
    "rl", "handrail.tools.rollouts.runs", check_fn="handrail.tools.rollouts.tool:check", emoji="🏋️", timeout=120
)
_RUN_ID = text("The run's id.")


def check() -> Unavailable | bool:
    return usable_unless(missing("agent", "httpx"))


registry.register(
    **_tool(
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
registry.register(
    **_tool("rl_list_environments", "List the environments for rollouts: task sets, each with a reward function."),
    read_only=True,
    toolset_description="reinforcement-learning rollouts",
    example={},
)
registry.register(
    **_tool(
        "rl_results",
        "The rewards of a run, and a JSONL file with its trajectories.",
        ("run_id",),
        run_id=_RUN_ID,
        format=text("Of the file.", enum=["sharegpt", "messages"]),
    ),
    example=["rl_stop", {"run_id": "$run_id", "format": "messages"}],
)
registry.register(
    **_tool("rl_start", "Start a planned run in the background. The user is asked first.", ("run_id",), run_id=_RUN_ID),
    actions="handrail.tools.rollouts.runs:actions",
    example=["rl_configure", {"run_id": "$run_id"}],
)
registry.register(
    **_tool("rl_status", "The state of a run of rollouts; without run_id the latest runs.", run_id=_RUN_ID),
    example=["rl_start", {"run_id": "$run_id"}],
)
registry.register(
    **_tool("rl_stop", "Stop a run of rollouts. What was scored is kept.", ("run_id",), run_id=_RUN_ID),
    example=["rl_start", {"run_id": "$run_id"}],
)

"""The tool `rl_results`: the rewards and trajectories of a run."""

from ...core.builtin import registry, text
from . import RUN_ID, tool

registry.register(
    **tool(
        "rl_results",
        "The rewards of a run, and a JSONL file with its trajectories.",
        ("run_id",),
        run_id=RUN_ID,
        format=text("Of the file.", enum=["sharegpt", "messages"]),
    ),
    example=["rl_stop", {"run_id": "$run_id", "format": "messages"}],
)

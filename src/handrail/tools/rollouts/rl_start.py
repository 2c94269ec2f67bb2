"""The tool `rl_start`: start a planned run."""

from ...core.builtin import registry
from . import RUN_ID, tool

registry.register(
    **tool("rl_start", "Start a planned run in the background. The user is asked first.", ("run_id",), run_id=RUN_ID),
    actions="handrail.tools.rollouts.runs:actions",
    example=["rl_configure", {"run_id": "$run_id"}],
)

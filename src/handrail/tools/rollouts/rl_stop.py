"""The tool `rl_stop`: stop a run."""

from ...core.builtin import registry
from . import RUN_ID, tool

registry.register(
    **tool("rl_stop", "Stop a run of rollouts. What was scored is kept.", ("run_id",), run_id=RUN_ID),
    example=["rl_start", {"run_id": "$run_id"}],
)

"""The tool `rl_status`: the progress of runs."""

from ...core.builtin import registry
from . import RUN_ID, tool

registry.register(
    **tool("rl_status", "The state of a run of rollouts; without run_id the latest runs.", run_id=RUN_ID),
    example=["rl_start", {"run_id": "$run_id"}],
)

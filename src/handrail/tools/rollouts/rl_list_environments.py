"""The tool `rl_list_environments`: list the environments for rollouts."""

from ...core.builtin import registry
from . import tool

registry.register(
    **tool("rl_list_environments", "List the environments for rollouts: task sets, each with a reward function."),
    read_only=True,
    toolset_description="reinforcement-learning rollouts",
    example={},
)

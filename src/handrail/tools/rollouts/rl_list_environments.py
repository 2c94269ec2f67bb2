"""The tool `rl_list_environments`: list the environments for rollouts."""

from __future__ import annotations

from ...core.builtin import registry

registry.register(
    name="rl_list_environments",
    toolset="rl",
    schema={
        "description": "List the environments for rollouts: task sets, each with a reward function.",
        "parameters": {"type": "object", "properties": {}},
    },
    handler="handrail.tools.rollouts.calls:rl_list_environments",
    check_fn="handrail.tools.rollouts:check",
    emoji="🏋️",
    timeout=120,
    read_only=True,
    toolset_description="reinforcement-learning rollouts",
    example={},
)

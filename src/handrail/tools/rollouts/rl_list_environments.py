"""The tool `rl_list_environments`: list the environments for rollouts."""

from ...core.builtin import registry, tool_schema

registry.register(
    name="rl_list_environments",
    toolset="rl",
    schema=tool_schema("List the environments for rollouts: task sets, each with a reward function."),
    handler="handrail.tools.rollouts.calls:rl_list_environments",
    check_fn="handrail.tools.rollouts:check",
    emoji="🏋️",
    timeout=120,
    read_only=True,
    toolset_description="reinforcement-learning rollouts",
    example={},
)

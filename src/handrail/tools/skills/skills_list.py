"""The tool `skills_list`: find a skill."""

from ...core.builtin import registry, text, tool_schema
from ...types import Resources

registry.register(
    name="skills_list",
    toolset="skills",
    schema=tool_schema(
        "List the skills: written know-how for kinds of tasks, each with a name and what it is for. Read the one that fits "
        "with skill_view before you start such a task.",
        category=text("Only the skills of this category."),
    ),
    handler="handrail.tools.skills.calls:skills_list",
    emoji="📚",
    read_only=True,
    resources=lambda _: Resources(reads=("skills",)),
    toolset_description="read and write skills",
    example=["skill_manage", {}],
)

"""The tool `skills_list`: find a skill."""

from ...core.builtin import family, registry, text
from ...types import Resources

_tool = family("skills", "handrail.tools.skills.calls")

registry.register(
    **_tool(
        "skills_list",
        "List the skills: written know-how for kinds of tasks, each with a name and what it is for. Read the one that fits "
        "with skill_view before you start such a task.",
        category=text("Only the skills of this category."),
    ),
    emoji="📚",
    read_only=True,
    resources=lambda _: Resources(reads=("skills",)),
    toolset_description="read and write skills",
    example=["skill_manage", {}],
)

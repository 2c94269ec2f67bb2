"""The tool `skill_view`: read a skill."""

from ...core.builtin import registry, text, tool_schema
from ...types import Resources

registry.register(
    name="skill_view",
    toolset="skills",
    schema=tool_schema(
        "Read a skill's instructions and the names of its other files; with file_path one of those. Relative paths in a "
        "skill start at its folder.",
        ("name",),
        name=text("As skills_list names it."),
        file_path=text("A file of the skill, such as references/api.md."),
    ),
    handler="handrail.tools.skills.calls:skill_view",
    emoji="📖",
    read_only=True,
    resources=lambda _: Resources(reads=("skills",)),
    example=[
        "skill_manage",
        {"name": "git-release"},
        {"name": "git-release", "file_path": "references/checklist.md"},
    ],
)

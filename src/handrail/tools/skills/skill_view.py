"""The tool `skill_view`: read a skill."""

from ...core.builtin import family, registry, text
from ...types import Resources

_tool = family("skills", "handrail.tools.skills.calls")

registry.register(
    **_tool(
        "skill_view",
        "Read a skill's instructions and the names of its other files; with file_path one of those. Relative paths in a "
        "skill start at its folder.",
        ("name",),
        name=text("As skills_list names it."),
        file_path=text("A file of the skill, such as references/api.md."),
    ),
    emoji="📖",
    read_only=True,
    resources=lambda _: Resources(reads=("skills",)),
    example=[
        "skill_manage",
        {"name": "git-release"},
        {"name": "git-release", "file_path": "references/checklist.md"},
    ],
)

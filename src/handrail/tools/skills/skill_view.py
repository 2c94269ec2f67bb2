"""The tool `skill_view`: read a skill."""

from __future__ import annotations

from ...core.builtin import registry
from ...types import Resources

registry.register(
    name="skill_view",
    toolset="skills",
    schema={
        "description": (
            "Read a skill's instructions and the names of its other files; with file_path one of those. Relative paths in a "
            "skill start at its folder."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "As skills_list names it."},
                "file_path": {"type": "string", "description": "A file of the skill, such as references/api.md."},
            },
            "required": ["name"],
        },
    },
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

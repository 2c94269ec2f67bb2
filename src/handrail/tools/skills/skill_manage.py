"""The tool `skill_manage`: write what was learned into a skill."""

from ...core.builtin import family, registry, text
from ...types import Resources

_tool = family("skills", "handrail.tools.skills.calls")

registry.register(
    **_tool(
        "skill_manage",
        "Write down know-how that will be needed again, or fix a skill that was wrong. create and edit take the whole "
        "SKILL.md as content: a header with name and description (what it does, and when to use it) between two lines ---, "
        "then the steps. patch replaces old_string by new_string. The user is asked first.",
        ("action", "name"),
        action=text("What to do.", enum=["create", "edit", "patch", "delete", "write_file", "remove_file"]),
        name=text("Small letters, digits and hyphens: git-release."),
        content=text("The whole SKILL.md, for create and edit."),
        category=text("A folder to put a new skill in."),
        file_path=text("Another file of the skill: references/x.md, scripts/x.py. For patch default SKILL.md."),
        file_content=text("For write_file."),
        old_string=text("For patch: text that is there once."),
        new_string=text("For patch: what replaces it."),
        replace_all={"type": "boolean", "description": "For patch: every occurrence. Default false."},
    ),
    emoji="📝",
    resources=lambda _: Resources(writes=("skills",)),
    actions="handrail.tools.skills.calls:actions",
    example=[
        {
            "action": "create",
            "name": "git-release",
            "content": (
                "---\nname: git-release\n"
                "description: How this team tags and publishes a release. Use when asked to release.\n---\n"
                "1. Run the tests.\n2. Tag the commit, and push the tag.\n"
            ),
        },
        {
            "action": "write_file",
            "name": "git-release",
            "file_path": "references/checklist.md",
            "file_content": "- version\n- notes\n",
        },
        {
            "action": "patch",
            "name": "git-release",
            "old_string": "Run the tests.",
            "new_string": "Run the tests and read their log.",
        },
    ],
)

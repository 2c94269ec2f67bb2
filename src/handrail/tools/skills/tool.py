"""`skills_list`, `skill_view`, `skill_manage`: find a skill, read it, and write what was learned into one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.builtin import registry
from ...core.registry import tool_result
from ...types import JsonDict, Resources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...protocols import Action
    from ...types import ToolContext
    from .library import Library


def skills_list(args: JsonDict, **_: object) -> str:
    from .library import State

    found = _library().all()
    category = args.get("category")
    ready = [skill for skill in found if skill.state is State.READY and category in (None, "", skill.place.category)]
    result: JsonDict = {
        "skills": [
            {
                "name": skill.name,
                "description": skill.header.description,
                **({"category": skill.place.category} if skill.place.category else {}),
            }
            for skill in sorted(ready, key=lambda skill: skill.name)
        ]
    }
    held = sum(skill.state in (State.UNTRUSTED, State.SUSPICIOUS, State.BROKEN) for skill in found)
    if held:
        result["held_back"] = held
        result["hint"] = "the person can see with `handrail skills list` which skills are held back, and why"
    return tool_result(result)


def skill_view(args: JsonDict, **_: object) -> str:
    from ...errors import InvalidArguments, SkillError
    from .content import text_of
    from .format import FILE, parse

    try:
        skill, files = _library().open(args["name"])
        path = args.get("file_path") or FILE
        if path not in files:
            raise SkillError(f"{skill.name} has no file {path[:100]!r}; it has: {', '.join(sorted(files))}")
        text = text_of(files, path)
        if path != FILE:
            return tool_result(name=skill.name, file_path=path, content=text)
        header, body = parse(text)
    except SkillError as error:
        raise InvalidArguments(str(error)) from None
    result: JsonDict = {"name": skill.name, "description": header.description, "content": body}
    result["folder"] = skill.place.folder
    others = sorted(each for each in files if each != FILE)
    for name, value in (
        ("files", others),
        ("compatibility", header.compatibility),
        ("allowed_tools", header.allowed_tools),
    ):
        if value:
            result[name] = value
    return tool_result(result)


def skill_manage(args: JsonDict, **_: object) -> str:
    from .edits import apply, plan

    library = _library()
    change = plan(args, library)
    apply(change)
    if change.after is None:
        return tool_result(removed=change.place)
    return tool_result(name=change.name, written=change.place, bytes=len(change.after.encode()))


def _actions(args: JsonDict, _: ToolContext) -> Sequence[Action]:
    from .edits import plan, question

    return [question(plan(args, _library()))]


def _library() -> Library:
    from ...config import load_config
    from .library import Library

    return Library(load_config().skills)


registry.register(
    name="skills_list",
    toolset="skills",
    schema={
        "description": (
            "List the skills: written know-how for kinds of tasks, each with a name and what it is for. Read the one that fits "
            "with skill_view before you begin such a task."
        ),
        "parameters": {
            "type": "object",
            "properties": {"category": {"type": "string", "description": "Only the skills of this category."}},
        },
    },
    handler=skills_list,
    emoji="📚",
    read_only=True,
    resources=lambda _: Resources(reads=("skills",)),
)

registry.register(
    name="skill_view",
    toolset="skills",
    schema={
        "description": (
            "Read a skill's instructions and the names of its other files; with file_path one of those. Relative paths in a "
            "skill are meant from its folder."
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
    handler=skill_view,
    emoji="📖",
    read_only=True,
    resources=lambda _: Resources(reads=("skills",)),
)

registry.register(
    name="skill_manage",
    toolset="skills",
    schema={
        "description": (
            "Write down know-how that will be needed again, or mend a skill that was wrong. create and edit take the whole "
            "SKILL.md as content: a header with name and description (what it does, and when to use it) between two lines ---, "
            "then the steps. patch replaces old_string by new_string. The person is asked first."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "action": {
                    "type": "string",
                    "enum": ["create", "edit", "patch", "delete", "write_file", "remove_file"],
                },
                "name": {"type": "string", "description": "Small letters, digits and hyphens: git-release."},
                "content": {"type": "string", "description": "The whole SKILL.md, for create and edit."},
                "category": {"type": "string", "description": "A folder to put a new skill in."},
                "file_path": {
                    "type": "string",
                    "description": "Another file of the skill: references/x.md, scripts/x.py. For patch default SKILL.md.",
                },
                "file_content": {"type": "string", "description": "For write_file."},
                "old_string": {"type": "string", "description": "For patch: text that stands there once."},
                "new_string": {"type": "string", "description": "For patch: what is to stand there instead."},
                "replace_all": {"type": "boolean", "description": "For patch: wherever it stands. Default false."},
            },
            "required": ["action", "name"],
        },
    },
    handler=skill_manage,
    emoji="📝",
    resources=lambda _: Resources(writes=("skills",)),
    actions=_actions,
)

"""Run calls of `skills_list`, `skill_view` and `skill_manage`."""

from __future__ import annotations

import os

from ...core.outcome import tool_result
from ...environments.clean_env import is_secret_name
from ...errors import InvalidArguments, SkillError
from ...protocols import Action
from ...types import JsonDict, ToolContext
from .content import FILE, parse, text_of
from .edits import apply, plan, preview, question
from .library import Library, State


def skills_list(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    found = _library(context).all()
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
        result["hint"] = "the user can see with `handrail skills list` which skills are held back, and why"
    return tool_result(result)


def skill_view(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    try:
        skill, files = _library(context).open(args["name"])
        path = args.get("file_path") or FILE
        if path not in files:
            raise SkillError(f"{skill.name} has no file {path[:100]!r}; it has: {', '.join(sorted(files))}")
        text = text_of(files, path)
        if path != FILE:
            return tool_result(name=skill.name, file_path=path, content=text)
        header, body = parse(text)
    except SkillError as error:
        raise InvalidArguments(str(error)) from None
    others = sorted(each for each in files if each != FILE)
    allowed = (context or ToolContext()).config.terminal.allowed_secrets
    missing = [name for name in header.variables if not os.environ.get(name)]
    hidden = [name for name in header.variables if is_secret_name(name) and name not in (*allowed, *missing)]
    more: JsonDict = {"variables": list(header.variables), "missing_variables": missing, "hidden_variables": hidden}
    if missing or hidden:
        more["note"] = (
            "the user sets missing variables, and lists hidden ones in terminal.allowed_secrets, for commands to see them"
        )
    more |= {"files": others, "compatibility": header.compatibility, "allowed_tools": header.allowed_tools}
    return tool_result(
        name=skill.name,
        description=header.description,
        content=body,
        folder=skill.place.folder,
        **{name: value for name, value in more.items() if value},
    )


def skill_manage(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    change = plan(args, _library(context))
    apply(change)
    if change.after is None:
        return tool_result(removed=change.place)
    return tool_result(name=change.name, written=change.place, bytes=len(change.after.encode()))


def actions(args: JsonDict, context: ToolContext) -> list[Action]:
    return [question(plan(args, _library(context)), lambda: preview(plan(args, _library(context))))]


def _library(context: ToolContext | None) -> Library:
    return Library((context or ToolContext()).config.skills)

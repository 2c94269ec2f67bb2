"""See and trust skills: written know-how in the SKILL.md format.

Examples:
  handrail skills list
  handrail skills show git-release
  handrail skills trust git-release
"""

import os
from typing import Annotated

from ...base.safe_text import made_visible
from ...config.trust import Trust
from ...tools.skills.library import FILE, TRUST_KIND, Library, Skill, State, read, text_of, user_folder
from ...types import JsonDict
from ..options import Json, argument, new_cli, option
from ..output import ExitCode, emit, emit_table, refuse, visible
from ..runtime import open_runtime

cli = new_cli()
Name = Annotated[str, argument("", "The skill's name.", show_default=False)]
Revoke = Annotated[bool, option("--revoke", "Take the trust back.")]


@cli.command("list")
def list_skills(as_json: Json = False) -> None:
    """List the skills that were found, and whether a model sees them.

    They come from the folder `skills` beside config.yaml and those in `skills.folders`, from plugins, from pip (entry points of
    the group `handrail.skills`), and from `.handrail/skills`, `.agents/skills` and `.claude/skills` of the project, once trusted.
    """
    views, empty = [*map(_as_json, _library().all())], f"No skills. Put a folder with a SKILL.md into {user_folder()}."
    rows = [
        (each["name"], each["from"], each["state"], visible(each["reason"] or each["description"])) for each in views
    ]
    emit_table(("SKILL", "FROM", "STATE", "ABOUT"), rows, views, as_json=as_json, wide=3, empty=empty)


@cli.command()
def show(name: Name) -> None:
    """Show a skill's whole text, with invisible characters shown, and the names of its files."""
    skill = _get(name)
    files = read(skill.place.folder)
    emit(visible(made_visible(text_of(files, FILE))))
    for each in sorted(files):
        if each != FILE:
            emit(f"{visible(made_visible(each))} ({len(files[each]):,} bytes)")


@cli.command()
def trust(name: Name, revoke: Revoke = False) -> None:
    """Let models see a skill as it is now: one of this project, or one that looked suspicious.

    A skill is text that a model follows: read it first. Any change of its files has to be trusted again.
    """
    skill = _get(name)
    if revoke:
        Trust().revoke(TRUST_KIND, skill.place.folder)
        emit(f"{name} is no longer trusted")
        return
    Trust().trust(TRUST_KIND, skill.place.folder, skill.digest)
    emit(f"{name} is trusted as it is now: {skill.digest[:12]}")


def _library() -> Library:
    return Library(open_runtime(asks=False).config.skills)


def _get(name: str) -> Skill:
    skill = _library().get(name)
    if skill.state is State.BROKEN:
        refuse(f"{name} is broken: {skill.reason}", ExitCode.FAILED)
    return skill


def _as_json(skill: Skill) -> JsonDict:
    missing = ", ".join(name for name in skill.header.variables if not os.environ.get(name))
    return {
        "name": skill.name,
        "description": skill.header.description,
        "from": skill.place.source.value,
        "folder": skill.place.folder,
        "category": skill.place.category,
        "state": skill.state.value,
        "reason": skill.reason or (f"set {missing} in the environment" if missing else ""),
    }

"""Run calls of `skills_list`, `skill_view` and `skill_manage`."""

import os
import re
import shutil
from collections.abc import Callable
from typing import NamedTuple

from ...base.atomic import replace_file
from ...core.outcome import tool_result
from ...environments.command_input import is_secret_name
from ...errors import InvalidArguments, SkillError, ToolFailed
from ...files.failures import os_failure
from ...files.text import diff_to_approve
from ...protocols import Action, ActionKind, Preview
from ...types import JsonDict, ToolContext
from .library import FILE, Library, Skill, Source, State, check_name, parse, suspicion_of_file, text_of, user_folder

# A longer text cannot be shown to the user for approval.
MAX_CHARS = 16_000
_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MAX_DEPTH = 4
_HOW_TO = "for commands, the user sets missing variables, and lists hidden ones in terminal.allowed_secrets"


def skills_list(args: JsonDict, *, context: ToolContext, **_: object) -> str:
    found = Library(context.config.skills).all()
    category = args.get("category")
    ready = [skill for skill in found if skill.state is State.READY and category in (None, "", skill.place.category)]
    shown = [
        {"name": one.name, "description": one.header.description}
        | ({"category": one.place.category} if one.place.category else {})
        for one in sorted(ready, key=lambda skill: skill.name)
    ]
    result: JsonDict = {"skills": shown}
    held = sum(skill.state in (State.UNTRUSTED, State.SUSPICIOUS, State.BROKEN) for skill in found)
    if held:
        result["held_back"] = held
        result["hint"] = "the user can see with `handrail skills list` which skills are held back, and why"
    return tool_result(result)


def skill_view(args: JsonDict, *, context: ToolContext, **_: object) -> str:
    try:
        library = Library(context.config.skills)
        skill, files = library.open(args["name"])
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
    allowed = context.config.terminal.allowed_secrets
    missing = [name for name in header.variables if not os.environ.get(name)]
    hidden = [name for name in header.variables if is_secret_name(name) and name not in (*allowed, *missing)]
    more: JsonDict = {"variables": list(header.variables), "missing_variables": missing, "hidden_variables": hidden}
    if missing or hidden:
        more["note"] = _HOW_TO
    if skill.place.source is Source.PLUGIN:
        plugin = f"{skill.name.partition(':')[0]}:"
        related = [each.name for each in library.ready() if each.name.startswith(plugin) and each.name != skill.name]
        more["skills_of_the_same_plugin"] = related
    more |= {"files": others, "compatibility": header.compatibility, "allowed_tools": header.allowed_tools}
    return tool_result(
        name=skill.name,
        description=header.description,
        content=body,
        folder=skill.place.folder,
        **{name: value for name, value in more.items() if value},
    )


def skill_manage(args: JsonDict, *, context: ToolContext, **_: object) -> str:
    change = plan(args, Library(context.config.skills))
    apply(change)
    if change.after is None:
        return tool_result(removed=change.place)
    return tool_result(name=change.name, written=change.place, bytes=len(change.after.encode()))


def actions(args: JsonDict, context: ToolContext) -> list[Action]:
    library = Library(context.config.skills)
    return [question(plan(args, library), lambda: preview(plan(args, library)))]


class Change(NamedTuple):
    """One change. `path` is a file of the skill, empty for the skill itself; `after` is None for a removal, `before` for what is
    new. `files` are those that the removal of a skill takes away."""

    action: str
    name: str
    folder: str
    path: str
    after: str | None
    before: str | None = None
    files: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        return os.path.join(self.folder, self.path) if self.path else self.folder


def plan(args: JsonDict, library: Library) -> Change:
    """What a call of skill_manage would do. Raises InvalidArguments when it cannot be done."""
    try:
        name = check_name(args.get("name"))
        if args["action"] == "create":
            return _create(args, library)
        skill, files = library.open(name)
        if not skill.place.folder.startswith(f"{user_folder()}{os.sep}"):
            place = skill.place.folder
            raise SkillError(f"{name} is in {place}, which is not yours to change; create one of another name")
        return _PLANS[args["action"]](args, skill, files)
    except SkillError as error:
        raise InvalidArguments(str(error)) from None


def question(change: Change, preview: Callable[[], Preview]) -> Action:
    """The question for the gate. A skill is read in every later session, so the user sees all of it, or what changes."""
    details = {"why": "a skill is followed in all later sessions", "rule": "skills.write"}
    if change.after is None:
        details = {"why": "removes what the user or an earlier session wrote", "rule": "skills.remove"}
    return Action(ActionKind.TOOL, f"{change.action} {change.place}", details=details, preview=preview)


def preview(change: Change) -> Preview:
    """The diff; for a whole skill that is removed, the names of its files."""
    if change.files:
        return Preview("\n".join(change.files))
    diff = diff_to_approve(change.before or "", change.after or "", path=change.place, is_new=change.before is None)
    return Preview(diff, change.before or "")


def apply(change: Change) -> None:
    try:
        if change.after is not None:
            root, parent = os.path.realpath(user_folder()), os.path.realpath(os.path.dirname(change.place))
            # A link may have been created since the skill was read.
            if os.path.islink(change.place) or not f"{parent}{os.sep}".startswith(f"{root}{os.sep}"):
                raise ToolFailed(f"{change.place} leads out of {root}; nothing was written")
            replace_file(os.path.realpath(change.place), change.after.encode())
        elif change.path:
            os.unlink(change.place)
        else:
            shutil.rmtree(change.folder)
    except OSError as error:
        raise os_failure(error, doing="change", path=change.place) from None


def _create(args: JsonDict, library: Library) -> Change:
    name, text = args["name"], _text(args, "content")
    taken = next((skill for skill in library.all() if skill.name == name and skill.state is not State.BROKEN), None)
    if taken is not None:
        raise SkillError(f"there is a skill {name} already, in {taken.place.folder}; edit or patch that one")
    category = args.get("category")
    folder = user_folder().joinpath(*([check_name(category)] if category else []), name)
    if folder.exists():
        raise SkillError(f"{folder} exists already and is not a skill; ask the user to look at it")
    _check_file(name, FILE, text)
    return Change("create", name, str(folder), FILE, text)


def _edit(args: JsonDict, skill: Skill, files: dict[str, bytes]) -> Change:
    text = _text(args, "content")
    _check_file(skill.name, FILE, text)
    return Change("edit", skill.name, skill.place.folder, FILE, text, text_of(files, FILE))


def _patch(args: JsonDict, skill: Skill, files: dict[str, bytes]) -> Change:
    path = FILE if not args.get("file_path") else _inner(args["file_path"], files, may_be_new=False)
    old, new = _text(args, "old_string"), _text(args, "new_string", may_be_empty=True)
    before = text_of(files, path)
    count = before.count(old)
    if count != 1 and not (count and args.get("replace_all")):
        how = "copy it from the file as it is" if not count else "give more of the text around it, or replace_all"
        raise SkillError(f"old_string is in {path} {count} times; {how}")
    after = before.replace(old, new)
    _check_file(skill.name, path, after)
    return Change("patch", skill.name, skill.place.folder, path, after, before)


def _delete(_: JsonDict, skill: Skill, files: dict[str, bytes]) -> Change:
    return Change("delete", skill.name, skill.place.folder, "", None, files=tuple(sorted(files)))


def _write_file(args: JsonDict, skill: Skill, files: dict[str, bytes]) -> Change:
    path, text = _inner(args.get("file_path"), files, may_be_new=True), _text(args, "file_content")
    _check_file(skill.name, path, text)
    before = text_of(files, path) if path in files else None
    return Change("write", skill.name, skill.place.folder, path, text, before)


def _remove_file(args: JsonDict, skill: Skill, files: dict[str, bytes]) -> Change:
    path = _inner(args.get("file_path"), files, may_be_new=False)
    return Change("remove", skill.name, skill.place.folder, path, None, text_of(files, path))


_PLANS = {plan.__name__[1:]: plan for plan in (_edit, _patch, _delete, _write_file, _remove_file)}


def _text(args: JsonDict, name: str, *, may_be_empty: bool = False) -> str:
    value = args.get(name)
    if not isinstance(value, str) or (not value.strip() and not may_be_empty):
        raise SkillError(f"{args['action']} needs {name}")
    if len(value) > MAX_CHARS:
        raise SkillError(f"{name} has {len(value):,} characters; a file of a skill has at most {MAX_CHARS:,}: split it")
    return value


def _inner(path: object, files: dict[str, bytes], *, may_be_new: bool) -> str:
    """A normalised path inside of the skill, other than SKILL.md."""
    if not isinstance(path, str) or not path:
        raise SkillError("file_path is needed, such as references/checklist.md")
    parts = path.removeprefix("./").split("/")
    if len(parts) > _MAX_DEPTH or not all(map(_PART.fullmatch, parts)):
        raise SkillError(f"{path[:100]!r} is not a path in a skill; one looks like references/checklist.md")
    if (inner := "/".join(parts)) == FILE:
        raise SkillError(f"{FILE} is changed by the actions edit and patch")
    if not may_be_new and inner not in files:
        raise SkillError(f"the skill has no file {inner}; it has: {', '.join(sorted(files))}")
    return inner


def _check_file(name: str, path: str, text: str) -> None:
    if path == FILE and (wrong := parse(text)[0].name) != name:
        raise SkillError(f"the header says name: {wrong}; it must be {name}")
    if len(text) > MAX_CHARS:
        raise SkillError(f"{path} would have {len(text):,} characters; at most {MAX_CHARS:,} fit: split it")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise SkillError(f"{path} would hold half of a character; send complete ones") from None
    if found := suspicion_of_file(path, text):
        raise SkillError(f"{found}. Say it in plain words that the user can read, or leave it out")

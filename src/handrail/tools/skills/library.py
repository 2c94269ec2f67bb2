"""Which skills there are, which of them a model may see, and why not the others. A project's skills were written by others, and
a folder that `skills.folders` names can be written by an agent: a model sees these once the user trusts their present content.
The same holds for any skill that seems to hide instructions."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from stat import S_ISLNK, S_ISREG
from typing import Any, NamedTuple

from ...base.safe_text import suspicion_of, unseen_in
from ...base.suggest import did_you_mean
from ...config.paths import config_path, entry_points, folders_above
from ...config.trust import Trust, digest
from ...errors import SkillError
from ...settings.sections import SkillsConfig

TRUST_KIND = "skill"
MAX_PROMPT_CHARS = 12_000
_SHORT_CHARS = 160
_INTRODUCTION = "Before a task that one of these is about, read it with skill_view and follow it:"
GROUP = "handrail.skills"
# The first is ours; projects keep skills for any agent in the others.
PROJECT_FOLDERS = (".handrail/skills", ".agents/skills", ".claude/skills")
_MAX_DEPTH = 3
_MAX_FOLDERS = 5_000
_MAX_FILES = 1_000
_MAX_BYTES = 10_000_000
_PROSE = (".md", ".markdown", ".txt", ".rst")
Stamp = tuple[str, int, int, int]
FILE = "SKILL.md"
MAX_NAME_CHARS = 64
MAX_DESCRIPTION_CHARS = 1024
_MAX_FILE_CHARS = 262_144
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,100}")
EXAMPLE = "---\nname: git-release\ndescription: How this team makes a release. Use when asked to release.\n---\n"


class Source(Enum):
    USER = "user"
    FOLDER = "folder"  # one that `skills.folders` names, where others may write
    PIP = "pip"
    PLUGIN = "plugin"  # named PLUGIN:SKILL, and left out of prompts
    PROJECT = "project"


class Place(NamedTuple):
    """A folder with a SKILL.md. `category` is the folder between it and its source, if there is one; `name` is the skill's, if
    it is another than its header says."""

    source: Source
    folder: str
    category: str
    name: str = ""


def user_folder() -> Path:
    return config_path().parent / "skills"


def find(settings: SkillsConfig) -> Iterator[Place]:
    """Every skill. Of two with the same name the earlier one is used."""
    yield from _below(user_folder(), Source.USER)
    for name, folder in settings.of_plugins.items():
        yield Place(Source.PLUGIN, folder, "", name)
    for folder in settings.folders:
        yield from _below(Path(os.path.expanduser(folder)), Source.FOLDER)
    for _, target in sorted(entry_points(GROUP)):
        if (inside := _of_package(target)) is not None:
            yield from _below(inside, Source.PIP)
    for above in folders_above():
        for name in PROJECT_FOLDERS:
            yield from _below(above / name, Source.PROJECT)


def _below(root: Path, source: Source) -> Iterator[Place]:
    for looked, (folder, folders, _) in enumerate(os.walk(root, followlinks=True)):
        if looked == _MAX_FOLDERS:
            return
        parts = Path(folder).relative_to(root).parts
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        if os.path.isfile(os.path.join(folder, FILE)):
            yield Place(source, folder, "/".join(parts[:-1]))
            folders.clear()
        elif len(parts) == _MAX_DEPTH:
            folders.clear()


def _of_package(target: str) -> Path | None:
    """The folder that an entry point means: `package.inner:skills` is the folder `inner/skills` of that package. It imports
    nothing, as only the package at the top is looked up."""
    module, _, inner = target.partition(":")
    top, *parts = [*module.split("."), *filter(None, inner.split("."))]
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return None
    places = spec.submodule_search_locations if spec is not None else None
    return Path(places[0], *parts) if places else None


class State(Enum):
    READY = "ready"
    DISABLED = "disabled"
    UNTRUSTED = "untrusted"
    SUSPICIOUS = "suspicious"
    SHADOWED = "shadowed"  # an earlier source has a skill of that name
    BROKEN = "broken"


class Header(NamedTuple):
    """A skill's header. `description` is all that a model knows of it before it reads it."""

    name: str
    description: str
    compatibility: str = ""
    allowed_tools: str = ""
    variables: tuple[str, ...] = ()  # environment variables that it needs


class Skill(NamedTuple):
    """One skill that was found. `reason` says why a model does not see it, and what to do."""

    header: Header
    place: Place
    state: State
    reason: str = ""
    digest: str = ""

    @property
    def waits(self) -> bool:
        """Whether the project brings it, and you have not trusted it as it is now."""
        return self.state is State.UNTRUSTED and self.place.source is Source.PROJECT

    @property
    def name(self) -> str:
        return self.header.name


class Inspected(NamedTuple):
    """The result of an inspection. `problem` says why the folder is not a skill."""

    header: Header | None
    problem: str = ""
    digest: str = ""
    suspicion: str = ""


class Library:
    """All skills, as the folders are now."""

    def __init__(self, settings: SkillsConfig | None = None, *, trust: Trust | None = None) -> None:
        self._settings = settings or SkillsConfig()
        self._trust = trust or Trust()

    def all(self) -> list[Skill]:
        found: list[Skill] = []
        taken: dict[str, Skill] = {}
        for place in find(self._settings):
            skill = self._judged(place, inspect(place.folder), taken)
            found.append(skill)
            if skill.state is not State.BROKEN:
                taken.setdefault(skill.name, skill)
        return found

    def ready(self) -> list[Skill]:
        """The skills that a model may see, by name."""
        return sorted((skill for skill in self.all() if skill.state is State.READY), key=lambda skill: skill.name)

    def get(self, name: str) -> Skill:
        """The skill that a name means, whatever its state. Raises SkillError."""
        found = self.all()
        for skill in found:
            if skill.name == name and skill.state is not State.SHADOWED:
                return skill
        known = [skill.name for skill in found if skill.state is State.READY]
        raise SkillError(f"no skill {name[:80]!r}; {did_you_mean(name, known)}")

    def open(self, name: str) -> tuple[Skill, dict[str, bytes]]:
        """A skill that a model may see, with its files as they were judged. Raises SkillError."""
        skill = self.get(name)
        if skill.state is State.READY:
            try:
                files = read(skill.place.folder)
            except OSError as error:
                raise SkillError(f"{name} cannot be read: {error.strerror}") from None
            skill = self._judged(skill.place, judge(files), {})  # it may just have changed
        if skill.state in (State.UNTRUSTED, State.SUSPICIOUS):  # the reason repeats words that are held back
            raise SkillError(f"{name} is held back until the user has looked at it: `handrail skills list` says why")
        if skill.state is not State.READY:
            raise SkillError(f"{name} is {skill.state.value}: {skill.reason}")
        return skill, files

    def _judged(self, place: Place, found: Inspected, taken: dict[str, Skill]) -> Skill:
        if found.header is None:
            name = place.name or place.folder.rpartition("/")[2]
            return Skill(Header(name, ""), place, State.BROKEN, found.problem)
        header = found.header._replace(name=place.name or found.header.name)
        earlier = taken.get(header.name)
        trusted = self._trust.is_trusted(TRUST_KIND, place.folder, found.digest)
        state, reason = State.READY, ""
        if earlier is not None:
            state, reason = State.SHADOWED, f"{earlier.place.folder} has one of the same name"
        elif header.name in self._settings.disabled:
            state, reason = State.DISABLED, "skills.disabled in config.yaml lists it"
        elif found.suspicion and not trusted:
            state = State.SUSPICIOUS
            reason = f"{found.suspicion}; look at it, then `handrail skills trust {header.name}`"
        elif place.source in (Source.PROJECT, Source.FOLDER) and not trusted:
            state, reason = State.UNTRUSTED, f"look at it, then `handrail skills trust {header.name}`"
        return Skill(header, place, state, reason, found.digest)


def skills_prompt(found: Iterable[Skill]) -> str:
    """The part of a system prompt for a model that has the tool skill_view. Empty when there are no skills."""
    shown = [skill for skill in found if skill.state is State.READY and skill.place.source is not Source.PLUGIN]
    if not (lines := sorted(f"- {skill.name}: {skill.header.description}" for skill in shown)):
        return ""
    if sum(len(line) + 1 for line in lines) > MAX_PROMPT_CHARS:
        lines = [line if len(line) <= _SHORT_CHARS else f"{line[: _SHORT_CHARS - 1]}…" for line in lines]
        fit = MAX_PROMPT_CHARS // (_SHORT_CHARS + 1)
        if len(lines) > fit:
            lines = [*lines[:fit], f"- and {len(lines) - fit} more, which skills_list shows"]
    return "\n".join([_INTRODUCTION, *lines])


def check_name(name: object) -> str:
    if not isinstance(name, str) or len(name) > MAX_NAME_CHARS or not _NAME.fullmatch(name):
        raise SkillError(
            f"{str(name)[:80]!r} is not a name for a skill: use 1 to {MAX_NAME_CHARS} small letters, digits and single hyphens"
        )
    return name


def parse(text: str) -> tuple[Header, str]:
    """The header and the instructions. Raises SkillError with what to change."""
    if len(text) > _MAX_FILE_CHARS:
        raise SkillError(f"{FILE} has {len(text):,} characters; move the details to files beside it")
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != "---":
        raise SkillError(f"{FILE} must start with a header, such as:\n{EXAMPLE}")
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if end is None:
        raise SkillError(f"the header of {FILE} does not end; close it with a line ---")
    found = _mapping("\n".join(lines[1:end]))
    name = check_name(found.get("name"))
    description = found.get("description")
    if not isinstance(description, str) or not description.strip():
        raise SkillError("the header needs a description: what the skill does, and when to use it")
    if len(description) > MAX_DESCRIPTION_CHARS:
        raise SkillError(f"the description has {len(description):,} characters; at most {MAX_DESCRIPTION_CHARS:,} fit")
    more = (_words(found.get("compatibility")), _words(found.get("allowed-tools")), _variables(found))
    header = Header(name, " ".join(description.split()), *more)
    return header, "\n".join(lines[end + 1 :]).strip()


def _variables(found: dict[str, Any]) -> tuple[str, ...]:
    """From `required_environment_variables`, names or mappings with a `name`, or the older `prerequisites.env_vars`."""
    older = found.get("prerequisites")
    given = found.get("required_environment_variables") or (isinstance(older, dict) and older.get("env_vars"))
    listed = given if isinstance(given, list) else [given]
    names = [each.get("name") if isinstance(each, dict) else each for each in listed]
    return tuple(name for name in names if isinstance(name, str) and _VARIABLE.fullmatch(name))


def _mapping(text: str) -> dict[str, Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        found = YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError, RecursionError) as error:
        problem = str(getattr(error, "problem", "") or error).partition("\n")[0][:200]
        raise SkillError(f"the header is not YAML ({problem}); put quotes around a value that has a colon") from None
    if not isinstance(found, dict):
        raise SkillError(f"the header must be names with values, such as:\n{EXAMPLE}")
    return found


def _words(value: object) -> str:
    """A short text or a list of them; empty for anything else."""
    if isinstance(value, list):
        value = " ".join(str(each) for each in value[:50] if isinstance(each, str | int | float))
    return str(value)[:500] if isinstance(value, str | int | float) else ""


def inspect(folder: str) -> Inspected:
    """Inspect a skill. An unchanged one is not read again."""
    try:
        return _inspect(folder, tuple(_stamps(folder)))
    except SkillError as error:
        return Inspected(None, str(error))
    except OSError as error:
        return Inspected(None, f"it cannot be read: {error.strerror or error}")


def read(folder: str) -> dict[str, bytes]:
    """Every file by its path inside of the folder. Raises SkillError, OSError."""
    content: dict[str, bytes] = {}
    size = 0
    for name, *_ in _stamps(folder):
        with open(os.path.join(folder, name), "rb") as file:
            content[name] = data = file.read(_MAX_BYTES + 1)
        size += len(data)
        if size > _MAX_BYTES:
            raise SkillError(f"the skill has more than {_MAX_BYTES // 1_000_000} MB; keep data elsewhere")
    return content


def judge(content: Mapping[str, bytes]) -> Inspected:
    try:
        header, _ = parse(text_of(content, FILE))
    except SkillError as error:
        return Inspected(None, str(error))
    return Inspected(header, "", digest(content), _suspicion(content))


def text_of(content: Mapping[str, bytes], name: str) -> str:
    try:
        return content[name].decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SkillError(f"{name} is not text ({len(content[name]):,} bytes); use it by its path") from None


def suspicion_of_file(name: str, text: str) -> str:
    """Scripts and data may hold nearly anything; prose must not hide instructions."""
    found = suspicion_of(text) if name.lower().endswith(_PROSE) else unseen_in(text)
    return f"{name} {found}" if found else ""


@lru_cache(maxsize=1024)
def _inspect(folder: str, _stamps: tuple[Stamp, ...]) -> Inspected:
    return judge(read(folder))


def _suspicion(content: Mapping[str, bytes]) -> str:
    for name in sorted(content):
        if found := unseen_in(name):
            return f"the name of a file {found}"
        try:
            text = content[name].decode("utf-8-sig")
        except UnicodeDecodeError:
            continue  # a model is shown text only
        if found := suspicion_of_file(name, text):
            return found
    return ""


def _stamps(folder: str) -> Iterator[Stamp]:
    count = 0
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if each != "__pycache__" and not each.startswith("."))
        for name in [*sorted(names), *folders]:
            path = os.path.join(place, name)
            found = os.lstat(path)
            inner = os.path.relpath(path, folder)
            if S_ISLNK(found.st_mode):
                raise SkillError(f"{inner} is a link; what it names could change unseen. Copy the file")
            if not S_ISREG(found.st_mode) or name.endswith(".pyc"):
                continue
            count += 1
            if count > _MAX_FILES:
                raise SkillError(f"the skill has more than {_MAX_FILES:,} files; keep data elsewhere")
            yield inner, found.st_mtime_ns, found.st_size, found.st_ino

"""Which skills there are, which of them a model may see, and why not the others.

A project's skills were written by others, and a folder that `skills.folders` names can be written by an agent: a model sees
these once the user trusts their present content. The same holds for any skill that seems to hide instructions.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from ...base.suggest import did_you_mean
from ...config.paths import config_path, entry_points, folders_above
from ...config.trust import Trust
from ...errors import SkillError
from ...settings.sections import SkillsConfig
from . import content
from .content import FILE, Header, Inspected

TRUST_KIND = "skill"
MAX_PROMPT_CHARS = 12_000
_SHORT_CHARS = 160
_INTRODUCTION = "Before a task that one of these is about, read it with skill_view and follow it:"
GROUP = "handrail.skills"
# The first is ours; projects keep skills for any agent in the others.
PROJECT_FOLDERS = (".handrail/skills", ".agents/skills", ".claude/skills")
_MAX_DEPTH = 3
_MAX_FOLDERS = 5_000


class Source(Enum):
    USER = "user"
    FOLDER = "folder"  # one that `skills.folders` names, where others may write
    PIP = "pip"
    PROJECT = "project"


class Place(NamedTuple):
    """A folder with a SKILL.md. `category` is the folder between it and its source, if there is one."""

    source: Source
    folder: str
    category: str


def user_folder() -> Path:
    return config_path().parent / "skills"


def find(folders: Sequence[str] = ()) -> Iterator[Place]:
    """Every skill. Of two with the same name the earlier one is used."""
    yield from _below(user_folder(), Source.USER)
    for folder in folders:
        yield from _below(Path(os.path.expanduser(folder)), Source.FOLDER)
    for _, target in sorted(entry_points(GROUP)):
        inside = _of_package(target)
        if inside is not None:
            yield from _below(inside, Source.PIP)
    for above in folders_above():
        for name in PROJECT_FOLDERS:
            yield from _below(above / name, Source.PROJECT)


def _below(root: Path, source: Source) -> Iterator[Place]:
    left = [(str(root), 0)]
    looked = 0
    while left and looked < _MAX_FOLDERS:
        folder, depth = left.pop()
        looked += 1
        if os.path.isfile(os.path.join(folder, FILE)):
            category = os.path.relpath(os.path.dirname(folder), root) if depth else "."
            yield Place(source, folder, "" if category == "." else category)
            continue
        if depth < _MAX_DEPTH:
            left += [(path, depth + 1) for path in reversed(_folders_in(folder))]


def _folders_in(folder: str) -> list[str]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    paths = [os.path.join(folder, name) for name in names if not name.startswith((".", "_"))]
    return [path for path in paths if os.path.isdir(path)]


def _of_package(target: str) -> Path | None:
    """The folder that an entry point means: `package.inner:skills` is the folder `inner/skills` of that package.

    Only the package at the top is looked up, which imports nothing of it.
    """
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


class Skill(NamedTuple):
    """One skill that was found. `reason` says why a model does not see it, and what to do."""

    header: Header
    place: Place
    state: State
    reason: str = ""
    digest: str = ""

    @property
    def name(self) -> str:
        return self.header.name


class Library:
    """All skills, as the folders are now."""

    def __init__(self, settings: SkillsConfig | None = None, *, trust: Trust | None = None) -> None:
        self._settings = settings or SkillsConfig()
        self._trust = trust or Trust()

    def all(self) -> list[Skill]:
        found: list[Skill] = []
        taken: dict[str, Skill] = {}
        for place in find(self._settings.folders):
            skill = self._judged(place, content.inspect(place.folder), taken)
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
                files = content.read(skill.place.folder)
            except OSError as error:
                raise SkillError(f"{name} cannot be read: {error.strerror}") from None
            skill = self._judged(skill.place, content.judge(files), {})  # it may just have changed
        if skill.state in (State.UNTRUSTED, State.SUSPICIOUS):  # the reason repeats words that are held back
            raise SkillError(f"{name} is held back until the user has looked at it: `handrail skills list` says why")
        if skill.state is not State.READY:
            raise SkillError(f"{name} is {skill.state.value}: {skill.reason}")
        return skill, files

    def _judged(self, place: Place, found: Inspected, taken: dict[str, Skill]) -> Skill:
        if found.header is None:
            name = place.folder.rpartition("/")[2]
            return Skill(Header(name, ""), place, State.BROKEN, found.problem)
        header, earlier = found.header, taken.get(found.header.name)
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


def skills_prompt(library: Library) -> str:
    """The part of a system prompt for a model that has the tool skill_view. Empty when there are no skills."""
    skills = library.ready()
    if not skills:
        return ""
    lines = [f"- {skill.name}: {skill.header.description}" for skill in skills]
    if sum(len(line) + 1 for line in lines) > MAX_PROMPT_CHARS:
        lines = [line if len(line) <= _SHORT_CHARS else f"{line[: _SHORT_CHARS - 1]}…" for line in lines]
        fit = MAX_PROMPT_CHARS // (_SHORT_CHARS + 1)
        if len(lines) > fit:
            lines = [*lines[:fit], f"- and {len(lines) - fit} more, which skills_list shows"]
    return "\n".join([_INTRODUCTION, *lines])

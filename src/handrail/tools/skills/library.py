"""Which skills there are, which of them a model may see, and why not the others.

A project's skills were written by others, and a folder that `skills.folders` names can be written by an agent: a model sees
these once the user trusts their present content. The same holds for any skill that seems to hide instructions.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from ...base.suggest import did_you_mean
from ...config.trust import Trust
from ...errors import SkillError
from ...settings.sections import SkillsConfig
from . import content
from .content import Header, Inspected
from .sources import Place, Source, find

TRUST_KIND = "skill"
MAX_PROMPT_CHARS = 12_000
_SHORT_CHARS = 160
_INTRODUCTION = "Before a task that one of these is about, read it with skill_view and follow it:"


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

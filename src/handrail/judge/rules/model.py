"""What a rule is: an id, how grave it is, why, the uses of programs it is about, and examples that prove it.

The rules of a theme are sections of its file in `themes`:

    $VERBS:                                  a list that uses share
      delete|destroy|remove|                 a line that ends with `|` goes on in the next one
      purge

    [cloud.delete]                           the id of a rule
    severity: ask                            block, ask or note
    why: deletes resources in the cloud
    effect: remote                           what it changes; `machine` when not given
    uses:                                    usage patterns (see `usage`), one per line
      gcloud ... $VERBS
    match:                                   commands that the rule must find
      gcloud compute instances delete vm-1
    not_match:                               commands, like those, that it must not find
      gcloud compute instances list
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from ...errors import RuleError
from ..values.assessment import Reach, Severity
from ..values.data_files import DataFileError, Entry, Section, read_sections

_ID = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)+")
_LIST = re.compile(r"\$[A-Z][A-Z0-9_]*")
_KEYS = ("severity", "why", "effect", "uses", "match", "not_match")
_Choice = TypeVar("_Choice", bound=enum.StrEnum)


class Effect(enum.StrEnum):
    """What an action changes; an isolated environment makes only the first kind harmless."""

    MACHINE = "machine"
    """Files, processes or settings of the machine on which the command runs."""
    REMOTE = "remote"
    """Something elsewhere: a cloud account, a registry, a repository host, a database server, another machine."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One reason to stop and look.

    `uses` are usage patterns (see `usage`). A rule without any is raised by the walk, by its id.
    """

    id: str
    severity: Severity
    why: str
    uses: tuple[str, ...] = ()
    match: tuple[str, ...] = ()
    """Commands that it must find."""
    not_match: tuple[str, ...] = ()
    """Commands, like those, that it must not find."""
    effect: Effect = Effect.MACHINE
    regex: str = ""
    """A pattern for the words of the command line, in rules that users write."""

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise RuleError(
                f"rule {self.id!r}: an id is lower-case words with dots between, such as 'deploy.production'"
            )
        if not self.why:
            raise RuleError(f"rule {self.id!r}: say why it matters ('why')")
        for field in ("uses", "match", "not_match"):
            if not isinstance(getattr(self, field), tuple):
                raise RuleError(f"rule {self.id!r}: '{field}' is a list of texts")
        if not self.match or not self.not_match:
            missing = "'match'" if not self.match else "'not_match'"
            raise RuleError(
                f"rule {self.id!r}: give examples that it must match and must not match; {missing} has none"
            )

    @property
    def theme(self) -> str:
        return self.id.partition(".")[0]


class Match(NamedTuple):
    """A rule that a command line matches, and how far the action goes."""

    rule: Rule
    reach: Reach = Reach.NOWHERE


def read_rules(path: Path) -> list[Rule]:
    """The rules in the file of a theme. Raises DataFileError."""
    (_, _, first), *sections = read_sections(path)
    lists: dict[str, str] = {}
    for key, entry in first.items():
        patterns = _patterns(path, entry, lists)
        if not _LIST.fullmatch(key) or len(patterns) != 1:
            raise DataFileError(
                path, entry.line, f"{key!r} is before the first rule, and not a list such as '$VERBS: a|b'"
            )
        lists[key] = patterns[0]
    return [_read_rule(path, section, lists) for section in sections]


def _read_rule(path: Path, section: Section, lists: Mapping[str, str]) -> Rule:
    nothing = Entry(section.line, [])
    for key, entry in section.entries.items():
        if key not in _KEYS:
            raise DataFileError(path, entry.line, f"unknown key {key!r}; known: {', '.join(_KEYS)}")
    severity, why, effect, uses, match, not_match = (section.entries.get(key, nothing) for key in _KEYS)
    try:
        return Rule(
            section.name,
            _choice(path, severity, Severity),
            " ".join(why.values),
            tuple(_patterns(path, uses, lists)),
            tuple(match.values),
            tuple(not_match.values),
            _choice(path, effect, Effect) if effect.values else Effect.MACHINE,
        )
    except RuleError as error:
        raise DataFileError(path, section.line, str(error)) from None


def _choice(path: Path, entry: Entry, known: type[_Choice]) -> _Choice:
    try:
        return known(" ".join(entry.values))
    except ValueError:
        name, value = known.__name__.lower(), " ".join(entry.values)
        raise DataFileError(path, entry.line, f"unknown {name} {value!r}; known: {', '.join(known)}") from None


def _patterns(path: Path, entry: Entry, lists: Mapping[str, str]) -> list[str]:
    """Usage patterns, each in one piece and with the words of the lists it names."""
    found: list[str] = []
    open_end = False
    for value in entry.values:
        text = value
        if "$" in value:
            for name in set(_LIST.findall(value)):
                if name not in lists:
                    raise DataFileError(path, entry.line, f"unknown list {name!r} in {value!r}")
                text = re.sub(rf"\{name}\b", lists[name].replace("\\", r"\\"), text)
        if open_end:
            found[-1] += text
        else:
            found.append(text)
        open_end = value[-1] == "|"
    if open_end:
        raise DataFileError(path, entry.line, f"{found[-1]!r} ends with '|', and nothing follows")
    return found

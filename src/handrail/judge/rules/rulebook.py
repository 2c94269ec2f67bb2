"""Look up and apply rules: those that come with Handrail, and those that a user adds."""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple, TypeVar

from ...errors import RuleError
from ..programs.tables import DATA_PROGRAMS
from ..values import paths
from ..values.assessment import Reach, Severity
from ..values.data_files import DataFileError, Entry, Patterns, Section, Words, read_sections, read_tables
from .command import Command, canonical
from .targets import READERS, WRITERS
from .tool_conditions import SQL_CLIENTS
from .unknown_programs import destructive, own_arguments, protected_arguments, reveals_secrets
from .usage import EXCLUDED, FINDERS, Usage, programs, says

_RE = Patterns(__file__)
_WORDS = Words(__file__)

_THEMES = Path(__file__).parent / "themes"
_GROUPS = {"$writers": WRITERS, "$readers": READERS, "$sql-clients": SQL_CLIENTS}
_MAX_KEPT = 4096
_EMPTIED_EVERY_DAY = ("/dev/", "/proc/", "/run/")
_UNKNOWN_PROGRAM = "tail.destructive"
_PROTECTED_ARGUMENT = "tail.protected_path"
_OWN_ARGUMENT = "own.argument"
_SECRET_STORE = "cred.store"
_ON_WRITE = read_tables(__file__)["on write"]
_KEYS = ("severity", "why", "effect", "uses", "match", "not_match")
_ORDER = {Severity.BLOCK: 0, Severity.ASK: 1, Severity.NOTE: 2}
_Choice = TypeVar("_Choice", bound=enum.StrEnum)


class Rulebook:
    """A set of rules, indexed by program."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules: dict[str, Rule] = {}
        self._by_program: dict[str, list[tuple[Rule, str]]] = {}
        self._by_glob: list[tuple[str, Rule, str]] = []
        self._by_text: list[Rule] = []
        self._compiled: dict[str, _Uses] = {}
        for rule in rules:
            if rule.id in self.rules:
                raise RuleError(f"two rules have the id {rule.id!r}")
            self.rules[rule.id] = rule
            if rule.regex:
                self._by_text.append(rule)
            for use in rule.uses:
                for name in (one for program in programs(use) for one in _GROUPS.get(program, (program,))):
                    if (listed := self._by_program.get(name)) is not None:
                        listed.append((rule, use))
                    elif "*" in name or "?" in name:
                        self._by_glob.append((name, rule, use))
                    else:
                        self._by_program.setdefault(canonical(name), []).append((rule, use))

    def findings(self, command: Command) -> list[Match]:
        """Every rule that the command line matches, the gravest first; one use of a rule is enough."""
        found: dict[str, Match] = {}
        excluded = False
        for rule, usage in self._uses(command.name).of(command):
            if rule.id in found and usage.where == "":
                continue
            reach = usage.matches(command)
            if reach is EXCLUDED:
                excluded = True
            if not isinstance(reach, Reach) or command.only_talks(grave=rule.severity is Severity.BLOCK):
                continue
            if rule.id not in found or found[rule.id].reach < reach:
                found[rule.id] = Match(rule, reach)
        if self._by_text:
            text = " ".join((command.program, *command.args))
            found |= {rule.id: Match(rule) for rule in self._by_text if says(rule.id, rule.regex, text)}
        if not found and (unlisted := self._unlisted(command, excluded=excluded)) is not None:
            return [unlisted]
        return sorted(found.values(), key=lambda match: (_ORDER[match.rule.severity], -match.reach))

    def _unlisted(self, command: Command, *, excluded: bool) -> Match | None:
        """What can be said about a use of a program that no rule names."""
        if _UNKNOWN_PROGRAM not in self.rules:
            return None
        text = " ".join(command.args)
        names_places = "/" in text or "~" in text
        if names_places and own_arguments(command):
            return Match(self.rules[_OWN_ARGUMENT], Reach.HOME)
        has_rules = command.name in self._by_program
        if not excluded and destructive(command, has_rules=has_rules):
            match = Match(self.rules[_UNKNOWN_PROGRAM])
        elif not has_rules and command.name not in DATA_PROGRAMS and reveals_secrets(command):
            match = Match(self.rules[_SECRET_STORE])
        elif (names_places or command.stdin is not None) and (
            places := protected_arguments(command, has_rules=has_rules)
        ):
            match = Match(self.rules[_PROTECTED_ARGUMENT], command.reach(places))
        else:
            return None
        return None if command.only_talks(grave=False) else match

    def knows(self, name: str) -> bool:
        """Whether there are rules about this program."""
        return canonical(name) in self._by_program

    def names(self) -> Iterator[str]:
        """Every program that a rule names, for judging names that are partly unknown."""
        yield from self._by_program

    def _uses(self, name: str) -> _Uses:
        uses = self._compiled.get(name)
        if uses is None:
            named = list(self._by_program.get(name, ()))
            named += [(rule, use) for glob, rule, use in self._by_glob if fnmatchcase(name, glob)]
            uses = _Uses([(rule, _read(use)) for rule, use in named])
            if len(self._compiled) < _MAX_KEPT:
                self._compiled[name] = uses
        return uses


class _Uses:
    """The uses of one program, indexed by the sub-command they start with, or by the paths they are about."""

    __slots__ = ("_always", "_by_place", "_by_word")

    def __init__(self, uses: Sequence[tuple[Rule, Usage]]) -> None:
        self._always: list[tuple[Rule, Usage]] = []
        self._by_word: dict[str, list[tuple[Rule, Usage]]] = {}
        self._by_place: dict[str, tuple[set[str], list[tuple[Rule, Usage]]]] = {}
        for use in uses:
            words = use[1].words
            if (places := use[1].only_places) is not None:
                classes, listed = self._by_place.setdefault(places.of, (set(), []))
                classes |= places.classes
                listed.append(use)
                continue
            if not words or words[0].globs or not words[0].exact:
                self._always.append(use)
                continue
            for word in words[0].exact:
                self._by_word.setdefault(word, []).append(use)

    def of(self, command: Command) -> Sequence[tuple[Rule, Usage]]:
        """Those that this command line can match."""
        if not self._by_word and not self._by_place:
            return self._always
        found: list[tuple[Rule, Usage]] = []
        for of, (classes, listed) in self._by_place.items():
            if not command.met(FINDERS[of]).isdisjoint(classes):
                found += listed
        for place, operand in enumerate(command.operands):
            found += self._by_word.get(operand, ())
            if place not in command.maybe:
                break
        return self._always + found if found else self._always


_read = functools.cache(Usage)


@functools.cache
def builtin() -> Rulebook:
    """The rules that come with Handrail."""
    return Rulebook(rule for path in sorted(_THEMES.glob("*.rules")) for rule in read_rules(path))


def rule(rule_id: str) -> Rule:
    """The rule with this id, for a finding of the walk itself."""
    return builtin().rules[rule_id]


def on_write(target: str, cwd: str = ".", project: str = "", *, empties: bool = False) -> list[Match]:
    """What is dangerous in writing to this path, or in emptying it."""
    if paths.normalise(target, cwd) == "/proc/sysrq-trigger":
        return [Match(rule("power.sysrq"), Reach.SYSTEM)]
    kinds = paths.classes(target, cwd, project)
    for kind, rule_id in _ON_WRITE.items():
        if kind in kinds:
            return [Match(rule(rule_id), paths.reach(target, cwd, project))]
    if empties and not kinds.isdisjoint(_WORDS.bad_to_empty) and not target.startswith(_EMPTIED_EVERY_DAY):
        return [Match(rule("redirect.data"), paths.reach(target, cwd, project))]
    return []


def on_assign(name: str, value: str) -> list[Match]:
    """What is dangerous in giving this value to a variable of the shell."""
    switches_off = name in _WORDS.history_variables and value in ("", "0", "/dev/null")
    is_lost = switches_off or (name == "HISTIGNORE" and value == "*")
    return [Match(rule("history.variable"))] if is_lost else []


def on_read(target: str, cwd: str = ".", project: str = "") -> list[Match]:
    """What is dangerous in reading this path."""
    if "credential" in paths.classes(target, cwd, project):
        return [Match(rule("cred.read"), paths.reach(target, cwd, project))]
    return []


def on_search(target: str, cwd: str = ".", project: str = "") -> list[Match]:
    """What is dangerous in reading everything below this path."""
    kinds = paths.classes(target, cwd, project)
    if "credential" not in kinds and not kinds.isdisjoint(("root", "home-root")):
        return [Match(rule("cred.search"), paths.reach(target, cwd, project))]
    return on_read(target, cwd, project)


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
        if not _RE.id.fullmatch(self.id):
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
        if not _RE.list.fullmatch(key) or len(patterns) != 1:
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
            for name in set(_RE.list.findall(value)):
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

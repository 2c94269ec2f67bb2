"""The notation in which rules name uses of programs, and how such a pattern is matched with a command line.

    git push -f|--force|--mirror          the sub-command `push` with one of these options, in any place and spelling
    docker volume rm|prune                sub-commands in a row, after whatever global options
    gcloud ... delete                     up to four other words between
    gpg --export-secret-* !--help         an option that starts like this; and none of those after `!`
    kubectl get secret* -o=yaml,json*     an option with one of these values (`-o=x|--output=x` for both of its names)
    rm -r|-R|--recursive @home|system     an operand that is a path of one of these classes
    cp >@startup                          a path that the program writes to (`<@`: that it reads)
    dropdb +                              at least one operand beside the words before (`+2`: two)
    shred @*                              the same, and the operands are paths: they say how far the action goes
    chmod {world-writable}                a condition that is written in Python, in one of the `*_conditions` modules

Words and values may have `*` and `?`; the first word is one program or several with `|` between.
"""

from __future__ import annotations

import enum
import functools
import itertools
import operator
import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase, translate
from inspect import isfunction
from typing import TYPE_CHECKING, NamedTuple

from ...errors import RuleError
from ..values.assessment import Reach
from ..values.word_values import Arg
from . import file_conditions, network_conditions, targets, tool_conditions
from .command import Command

if TYPE_CHECKING:
    import regex

_SECONDS = 0.05
_MAX_CHARS = 10_000
_MAX_PATTERN = 1000
_PROBE_CHARS = 400
_MAX_SKIPPED = 4
_NOUN = re.compile(r"[A-Za-z][\w.:-]*")
_SPECIAL = "-!@<>{+"
_ANYWHERE = frozenset("*")
FINDERS: dict[str, Callable[[Command], Sequence[Arg]]] = {
    "operands": operator.attrgetter("operands"),
    "writes": targets.written,
    "reads": targets.read,
}
_CLASS_TERMS = {"@": "operands", ">@": "writes", "<@": "reads"}
CONDITIONS: dict[str, Callable[[Command, str], bool]] = {
    name.replace("_", "-").rstrip("-"): function
    for module in (tool_conditions, file_conditions, network_conditions)
    for name, function in vars(module).items()
    if isfunction(function) and function.__module__ == module.__name__ and name[0] != "_"
}
"""Conditions that need more than options and words: each public function of these modules, with dashes in its name."""


class Excluded(enum.Enum):
    EXCLUDED = "excluded"


EXCLUDED = Excluded.EXCLUDED


class PatternError(ValueError):
    """A usage pattern that cannot be read; the message shows the part."""


class Word(NamedTuple):
    """One word in its place; an empty one stands for `...`."""

    exact: frozenset[str]
    globs: tuple[str, ...]
    pattern: re.Pattern[str] | None
    """For the globs."""

    def matches(self, text: str) -> bool:
        return text in self.exact or (self.pattern is not None and self.pattern.match(text) is not None)


class Option(NamedTuple):
    names: tuple[str, ...]
    valued: tuple[tuple[str, tuple[str, ...]], ...]

    def matches(self, command: Command, _: Sequence[Arg] = ()) -> bool:
        if self.names and command.has(self.names):
            return True
        for name, globs in self.valued:
            for option, value in (*command.values, *itertools.pairwise(command.args)):
                is_named = option == name or (len(option) > 3 and name.startswith(option))
                if is_named and any(fnmatchcase(value.lower(), glob) for glob in globs):
                    return True
        return False


class Places(NamedTuple):
    of: str
    classes: frozenset[str]

    def matches(self, command: Command, rest: Sequence[Arg]) -> bool:
        if self.classes == _ANYWHERE:
            return bool(_paths(self.of, command, rest))
        if rest is command.operands or self.of != "operands":
            return not command.met(FINDERS[self.of]).isdisjoint(self.classes)
        return command.any_class(self.classes, rest)


class Condition(NamedTuple):
    check: Callable[[Command, str], bool]
    parameter: str

    def matches(self, command: Command, _: Sequence[Arg]) -> bool:
        return bool(self.check(command, self.parameter))


Term = Option | Places | Condition


class Usage:
    """A parsed usage pattern. `matches` returns how far the action goes, or None."""

    __slots__ = ("least", "needs", "options", "refuses", "where", "words")

    def __init__(self, pattern: str) -> None:
        self.words: list[Word] = []
        self.options: list[Option] = []
        self.needs: list[Term] = []
        self.refuses: list[Term] = []
        self.least = 0
        self.where = ""
        for part in pattern.split()[1:]:
            self._add(part)

    def _add(self, part: str) -> None:
        if part[0] == "!":
            self.refuses.append(_term(part[1:]))
        elif part[0] == "+" and (part[1:] or "1").isdigit():
            self.least = int(part[1:] or 1)
        elif part[0] in _SPECIAL:
            term = _term(part)
            if isinstance(term, Option):
                self.options.append(term)
                return
            self.needs.append(term)
            if isinstance(term, Places):
                self.where = term.of
        elif part == "...":
            self.words.append(Word(frozenset(), (), None))
        else:
            choices = part.split("|")
            globs = tuple(choice for choice in choices if "*" in choice or "?" in choice)
            pattern = re.compile("|".join(map(translate, globs))) if globs else None
            self.words.append(Word(frozenset(choices) - set(globs), globs, pattern))

    @property
    def only_places(self) -> Places | None:
        """The paths it is about, when it is only about what a program reads or writes."""
        if self.words or len(self.needs) != 1 or not isinstance(self.needs[0], Places):
            return None
        return self.needs[0] if self.needs[0].of != "operands" and self.needs[0].classes != _ANYWHERE else None

    def matches(self, command: Command) -> Reach | Excluded | None:
        """How far the action goes; EXCLUDED when only a part after `!` made it harmless; None when it does not match."""
        for option in self.options:
            if not option.matches(command):
                return None
        end = _find(self.words, command) if self.words else 0
        if end < 0:
            return None
        rest = command.operands[end:] if end else command.operands
        if len(rest) < self.least:
            return None
        for term in self.needs:
            if not term.matches(command, rest):
                return None
        for term in self.refuses:
            if term.matches(command, rest):
                return EXCLUDED
        return command.reach(_paths(self.where, command, rest)) if self.where else Reach.NOWHERE


def programs(pattern: str) -> list[str]:
    """The programs that a pattern is about."""
    return pattern.split(None, 1)[0].split("|")


def _term(part: str) -> Term:
    sign = part[:2] if part[:2] in _CLASS_TERMS else part[0]
    if sign in _CLASS_TERMS:
        return Places(_CLASS_TERMS[sign], frozenset(part[len(sign) :].split("|")))
    if sign == "{" and part.endswith("}"):
        name, _, parameter = part[1:-1].partition(":")
        if name not in CONDITIONS:
            raise PatternError(f"unknown condition {part!r}; known: {', '.join(sorted(CONDITIONS))}")
        return Condition(CONDITIONS[name], parameter)
    if sign == "-":
        choices = [choice.partition("=") for choice in part.split("|")]
        if any(len(name) < 2 or name[0] != "-" for name, _, _ in choices):
            raise PatternError(f"{part!r} names options and something else; a word or condition must be on its own")
        valued = [(name, tuple(values.lower().split(","))) for name, equals, values in choices if equals]
        return Option(tuple(name for name, equals, _ in choices if not equals), tuple(valued))
    raise PatternError(f"cannot read {part!r} in a usage pattern")


def _paths(of: str, command: Command, rest: Sequence[Arg]) -> Sequence[Arg]:
    return rest if of == "operands" else FINDERS[of](command)


def _find(words: Sequence[Word], command: Command, word: int = 0, at: int = 0) -> int:
    """The index of the first operand after the words, or -1."""
    operands = command.operands
    if word == len(words):
        return at
    if not words[word].exact and not words[word].globs:
        return _find_later(words, command, word + 1, at)
    if at >= len(operands):
        return -1
    end = _find(words, command, word + 1, at + 1) if words[word].matches(operands[at]) else -1
    return end if end >= 0 or at not in command.maybe else _find(words, command, word, at + 1)


def _find_later(words: Sequence[Word], command: Command, word: int, at: int) -> int:
    operands = command.operands
    for start in range(at, min(at + _MAX_SKIPPED, len(operands)) + 1):
        end = _find(words, command, word, start)
        if end >= 0:
            return end
        if start < len(operands) and not _NOUN.fullmatch(operands[start]) and start not in command.maybe:
            break
    return -1


# Regular expressions that users write: none of them may take long, whatever the text.


@functools.lru_cache(512)
def compiled(rule_id: str, pattern: str) -> regex.Pattern[str]:
    """The pattern, if it is sound and quick; else RuleError says what is wrong with it."""
    import regex

    if len(pattern) > _MAX_PATTERN:
        raise RuleError(f"rule {rule_id!r}: the pattern is longer than {_MAX_PATTERN} characters")
    try:
        made = regex.compile(pattern)
    except regex.error as error:
        raise RuleError(f"rule {rule_id!r}: the pattern cannot be read: {error}") from None
    if made.search("") is not None:
        raise RuleError(f"rule {rule_id!r}: the pattern matches an empty text, so it would match everything")
    for probe in _probes(pattern):
        if _search(made, probe) is None:
            raise RuleError(
                f"rule {rule_id!r}: the pattern takes too long on a text that repeats itself, such as {probe[:12]!r}...; "
                "repeat no group that has a repetition inside"
            )
    return made


def says(rule_id: str, pattern: str, text: str) -> bool:
    """Whether the pattern is found in the text. One that takes too long after all counts as found."""
    return _search(compiled(rule_id, pattern), text[:_MAX_CHARS]) is not False


def _search(made: regex.Pattern[str], text: str) -> bool | None:
    try:
        return made.search(text, timeout=_SECONDS) is not None
    except TimeoutError:
        return None


def _probes(pattern: str) -> list[str]:
    """Texts on which patterns that backtrack without end do so: what the pattern repeats, and then something else."""
    literals = dict.fromkeys(re.findall(r"[A-Za-z0-9_/.-]+", pattern))
    letters = dict.fromkeys(re.sub(r"[^A-Za-z0-9 ]", "", pattern))
    units = [*literals, *letters, "a", "0", " ", "a ", "ab", "-", "/", "x=1 "]
    return [(unit * _PROBE_CHARS)[:_PROBE_CHARS] + "\n!" for unit in units[:60]]

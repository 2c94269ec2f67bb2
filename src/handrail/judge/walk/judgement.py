"""Collect what is found on the way through a command: findings, the command lines that would run, what is unknown."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from ..grammar.syntax import Script, SourceMap
from ..rules import Effect, Match, Rule, Rulebook
from ..values import paths
from ..values.assessment import Finding, Reach, Segment, Severity, Span, Unknown
from ..values.data_files import Words
from ..values.word_values import UNKNOWN, Arg

_WORDS = Words(__file__)
MAX_STEPS = 1_500
MAX_SCRIPT_STEPS = 60_000
MAX_TEXT_MADE = 4_000_000
_MAX_FINDINGS = 50
_MAX_UNKNOWN = 50
_MAX_SHOWN_ARGS = 12
_MAX_SEGMENT_ARGS = 1000
_FAR = (Reach.OUTSIDE, Reach.HOME, Reach.SYSTEM)
_UNREAD = frozenset(("dynamic", "parse", "limit", "text"))
_MAX_PROGRAM = 5_000
_MAX_TELLING = {"rce.reverse_shell": 2_000, "code.exec_computed": 3_000}


class Limit(Exception):
    """The command does more than is followed."""


class Sink(NamedTuple):
    """The script behind `>(..)`, and the source map of its text."""

    script: Script
    source_map: SourceMap


class Judgement:
    """What has been found so far."""

    def __init__(self, rulebook: Rulebook, project: str, *, length: int = 0, recording: bool = True) -> None:
        self.rulebook = rulebook
        self.project = project
        self.findings: list[Finding] = []
        self.sinks: dict[str, Sink] = {}
        self.recording = recording
        """Whether to keep the command lines, and not only the findings."""
        self.lines: list[tuple[Sequence[Arg], SourceMap, Span, int]] = []
        """Every command line that would run, with its source map, its place in that text, and how deep it is nested."""
        self.shown = 0
        """How many command lines were shown to the rules."""
        self.judged: dict[tuple[object, ...], list[Match]] = {}
        """What the rules said about command lines, by all that they saw of them."""
        self.scripts = 0
        """How many files that the command itself made were run."""
        self.scope: Scope | None = None
        """The script on the disk that is being followed, if it is one."""
        self.scope_cwd: Callable[[], str] = str
        """The working directory there."""
        self.seen: set[tuple[object, ...]] = set()
        """Commands of other programs' scripts that were judged already: thousands of the same one cost no more than one."""
        self._steps = MAX_STEPS + length
        self._room = MAX_TEXT_MADE + 8 * length
        self._script_steps = MAX_SCRIPT_STEPS
        self._seen: set[tuple[str, Span]] = set()

    def step(self, cost: int = 1) -> None:
        self._steps -= cost
        if self._steps < 0:
            raise Limit("the command does more than is followed")

    def spend(self, chars: int) -> None:
        """Text of so many characters was made or looked through: expansion must not cost more than a bounded amount."""
        self._room -= chars
        if self._room < 0:
            raise Limit("the command makes more text than is followed")

    @contextlib.contextmanager
    def in_script(self, scope: Scope, cwd: Callable[[], str], max_steps: int) -> Iterator[None]:
        """Inside of it fewer findings count, and only so much is followed."""
        outer, outer_cwd, steps = self.scope, self.scope_cwd, self._steps
        allowed = min(self._script_steps, max_steps)
        self.scope, self.scope_cwd, self._steps = scope, cwd, allowed
        try:
            yield
        finally:
            self._script_steps -= allowed - max(0, self._steps)
            self.scope, self.scope_cwd, self._steps = outer, outer_cwd, steps

    def report(self, rule_id: str, argv: Sequence[str], span: Span, reach: Reach = Reach.NOWHERE) -> None:
        """A finding of the walk itself."""
        self._found(self.rulebook.rules[rule_id], argv, span, reach)

    def add(self, matches: Iterable[Match], argv: Sequence[str], span: Span, *, is_checked: bool = False) -> None:
        """Findings of rules. `is_checked`: they count, wherever they were found."""
        for match in matches:
            self._found(match.rule, argv, span, match.reach, is_checked=is_checked)

    def _found(self, rule: Rule, argv: Sequence[str], span: Span, reach: Reach, *, is_checked: bool = False) -> None:
        why, scope = rule.why, self.scope
        if scope is not None:
            if not is_checked and not scope.counts(rule, reach, argv, self.scope_cwd()):
                return
            why = f"{why} (in {scope.path})"
        is_one_more = len(self.findings) < _MAX_FINDINGS or rule.severity is Severity.BLOCK
        if (rule.id, span) not in self._seen and is_one_more:
            self._seen.add((rule.id, span))
            self.findings.append(Finding(rule.id, rule.severity, why, span, shown(argv), reach))

    def sorted_findings(self) -> tuple[Finding, ...]:
        """The gravest first, else in the order in which they were found."""
        if not self.findings:
            return ()
        order = {Severity.BLOCK: 0, Severity.ASK: 1, Severity.NOTE: 2}
        return tuple(sorted(self.findings, key=lambda finding: (order[finding.severity], -finding.reach)))

    def segments(self) -> tuple[Segment, ...]:
        return tuple(
            Segment(shown(argv, _MAX_SEGMENT_ARGS), source_map.span(*span), depth)
            for argv, source_map, span, depth in self.lines
        )

    def unknowns(self, command: str) -> tuple[Unknown, ...]:
        """The words whose value is not known, as they are written."""
        found: dict[Span, Unknown] = {}
        for argv, source_map, place, _ in self.lines:
            for arg in argv:
                if UNKNOWN in arg and len(found) < _MAX_UNKNOWN:
                    word = getattr(arg, "word", None)
                    span = source_map.span(*((word.start, word.end) if word is not None else place))
                    found.setdefault(span, Unknown(command[span[0] : span[1]], span))
        return tuple(found.values())


def shown(argv: Sequence[str], most: int = _MAX_SHOWN_ARGS) -> tuple[str, ...]:
    """A command line for display: long ones are cut, unknown parts are question marks."""
    cut = [str(arg).replace(UNKNOWN, "?") for arg in argv[:most]]
    return (*cut, "...") if len(argv) > most else tuple(cut)


class Scope(NamedTuple):
    """A script that is being followed."""

    path: str
    root: str
    """The work tree that it belongs to."""
    is_new: bool
    """Written in this session: where it cannot be known what it does, it asks."""
    is_code: bool = False
    """In another language than the shell's, where unknown arguments are the rule."""
    depth: int = 1
    size: int = 0
    is_own: bool = False
    """Written by the command at hand: it counts as if it were a part of that."""

    def counts(self, rule: Rule, reach: Reach, argv: Sequence[str], cwd: str) -> bool:
        """Whether a finding in this script is worth a question."""
        if rule.severity is Severity.NOTE:
            return False
        if rule.severity is Severity.BLOCK:
            return self.is_new or not self.is_code or reach in _FAR
        far = reach if reach is not Reach.NOWHERE else paths.widest(argv[1:], cwd, self.root)
        if reach in _FAR and paths.widest(argv[1:], cwd, self.root) in (Reach.PROJECT, Reach.TEMP, Reach.NOWHERE):
            far = Reach.PROJECT
        theme = rule.id.partition(".")[0]
        if theme in _UNREAD:
            return self.is_new and not self.is_code and (rule.id != "dynamic.command" or self._matters(argv, far))
        if self.is_own and not self.is_code:
            return True
        if theme in _WORDS.in_tree or rule.id in _WORDS.in_tree:
            if far is Reach.UNKNOWN:
                return self.is_new and not self.is_code and reach is Reach.UNKNOWN and not _is_below(argv)
            return far in _FAR or (self.is_new and rule.effect is Effect.REMOTE and not self.is_code)
        return far is not Reach.PROJECT or reach is Reach.NOWHERE

    def _matters(self, argv: Sequence[str], far: Reach) -> bool:
        """Whether it matters that a program is not known: it is given a place outside, or nothing at all is known of the line."""
        if argv[0].strip(UNKNOWN + "/"):  # ${CROSS}ar
            return False
        return far in _FAR or len(argv) == 1

    def counts_in_code(self, rule: Rule, reach: Reach) -> bool:
        """The same for what a reader of another language found in the program as a whole."""
        if reach in _FAR:
            return True
        return self.is_new and rule.id in _WORDS.of_code and self.size <= _MAX_TELLING.get(rule.id, _MAX_PROGRAM)


def _is_below(argv: Sequence[str]) -> bool:
    """Whether everything unknown is below a folder of the tree: `build/$name`."""
    return all(arg[:1] not in ("/", "~", UNKNOWN) and not arg.startswith("..") for arg in argv[1:] if UNKNOWN in arg)

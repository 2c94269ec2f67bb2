"""Suggest the fewest narrow rules that would have answered your latest questions as you did.

A rule is an entry of `approvals.allow` that names a whole command, or a key of `command_allowlist` that stays in one project or
among temporary files. None allows what you ever denied, and none reaches further than what you said yes to.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import islice, product
from pathlib import Path
from typing import NamedTuple

from ..judge.rules import Rulebook, builtin
from ..judge.values.assessment import Reach, Severity
from ..judge.values.data_files import read_tables
from ..protocols import Action
from ..store.approvals import DecisionRecord
from ..types import JsonDict
from .action_review import Judge, SelfProtection, builtin_assess, private_dirs
from .allowlist import BadEntry, Entry, GrantKey, allow_entries
from .gate import AUTOMATIC
from .policy import Judged, Pending, Policy
from .records import HISTORY_NAME, NOBODY_ASKED, ActionHistory, recorded_action

_TABLES = read_tables(__file__)[""]
_NEVER = tuple(_TABLES["never"].split())
_MIN_ANSWERED, _MIN_STEM, _SHOWN = 2, 3, 5
# So many of the questions in so short a time may be an agent that wants the rule.
_BURST_SECONDS, _MIN_BURST = 600, 3


class Question(NamedTuple):
    """What you were asked and said; `pending` is what the policy of today would ask about."""

    at: float
    session: str
    allowed: bool
    pending: tuple[Pending, ...]


class Suggestion(NamedTuple):
    """`held_back` is how many of the newest questions, which were not looked at, it answers, and how many those are;
    `provoked` says why an agent could have brought it about."""

    id: str
    rule: str
    setting: str
    answered: int
    held_back: tuple[int, int]
    also_allows: tuple[Wider, ...]
    provoked: str


class Suggestions(NamedTuple):
    questions: int
    answered: int
    rules: list[Suggestion]


class Rule(NamedTuple):
    text: str
    grants: Entry | GrantKey

    def covers(self, item: Pending) -> bool:
        grants = self.grants
        return grants.covers(item.key) if isinstance(grants, GrantKey) else _matches(grants, item.finding.argv)


class Suggester:
    """Reads the history in `state_dir` and the `decisions`, under the `policy` of today."""

    def __init__(self, policy: Policy, *, state_dir: Path, decisions: Iterable[DecisionRecord] = ()) -> None:
        self._policy = policy._replace(ask_disabled_by=None)
        self._judge = Judge(builtin_assess, SelfProtection(private_dirs()))
        self._vetoed: set[str] = set()
        self._wider: dict[Rule, list[Wider]] = {}
        lines = ActionHistory(state_dir / HISTORY_NAME).lines()
        self._asked = self._questions(line for line in lines if "text" in line and "kind" in line)
        denied = self._questions(_line(record) for record in decisions if record.decision == "deny")
        # Every no of yours that is still known, however old.
        self._denied = [question for question in (*denied, *self._asked) if not question.allowed]

    def suggest(self, last: int) -> Suggestions:
        asked = self._asked[-last:]
        older, held_back = asked[: len(asked) - len(asked) // 5], asked[len(asked) - len(asked) // 5 :]
        chosen = _pruned(self._chosen(older), older)
        answered = [question for question in asked if question.allowed and _answers(chosen, question)]
        rules = [self._described(rule, answered, held_back) for rule in chosen]
        return Suggestions(len(asked), len(answered), sorted(rules, key=lambda each: -each.answered))

    def _questions(self, lines: Iterable[JsonDict]) -> list[Question]:
        """What a person answered, and what the policy of today would still ask."""
        found = [self._question(line) for line in lines if line["by"] not in NOBODY_ASKED | AUTOMATIC]
        return [question for question in found if question.pending]

    def _question(self, line: JsonDict) -> Question:
        allowed, tool, keys = line["verdict"] != "deny", line["tool"], line.get("keys", ())
        judged = self._judge.judge(recorded_action(line), tool, self._policy)
        pending = self._policy.rule(judged, tool, granted=lambda _: False).pending
        if not allowed and ("cut" in line or not line["text"] or line["text"].endswith(" characters)")):
            # What exactly was denied is not known any more, so nothing of that kind is suggested.
            self._vetoed.update(item.finding.rule for item in pending)
            self._vetoed.update(key.partition("@")[0].rpartition("/")[2] for key in keys)
        asked = tuple(item for item in pending if str(item.key) in keys)
        return Question(line["at"], line.get("session") or "", allowed, asked or pending)

    def _chosen(self, questions: Sequence[Question]) -> list[Rule]:
        """Take the rule that answers most of what is left, the narrowest of equals, until none answers enough."""
        left = {
            number: set(range(len(question.pending)))
            for number, question in enumerate(questions)
            if question.allowed and all(map(self._may_be_allowed, question.pending))
        }
        coverage = _coverage({number: questions[number] for number in left})
        chosen: list[Rule] = []
        while coverage:
            gains: dict[Rule, tuple[int, int]] = {}  # how many questions it answers, and how many in part
            for rule, covered in coverage.items():
                parts = [(left[number], places) for number, places in covered.items() if left[number] & places]
                gains[rule] = sum(wanted <= places for wanted, places in parts), len(parts)
            best = max(coverage, key=lambda rule: (*gains[rule], isinstance(rule.grants, Entry), "*" not in rule.text))
            covered = coverage.pop(best)
            if gains[best][1] < _MIN_ANSWERED:
                break
            said_yes = [questions[number].pending[place] for number, places in covered.items() for place in places]
            if any(_answers([*chosen, best], no) for no in self._denied) or self._goes_too_far(best, said_yes):
                continue
            chosen.append(best)
            for number, places in covered.items():
                left[number] -= places
        return chosen

    def _may_be_allowed(self, item: Pending) -> bool:
        rule = item.finding.rule
        return item.key.can_last and not rule.startswith(_NEVER) and rule not in self._vetoed

    def _goes_too_far(self, rule: Rule, said_yes: Sequence[Pending]) -> bool:
        """Whether it allows something that is found by another rule, or goes further, than all that you said yes to."""
        rulebook, judge = self._policy.rulebook or builtin(), partial(self._judge.judge, tool="", policy=self._policy)
        if isinstance(rule.grants, GrantKey):
            tried = like_key(rule.grants, rulebook)
            after = self._policy._replace(allowlist=(*self._policy.allowlist, rule.grants))
        else:
            tried = like_entry(rule.grants, rulebook)
            after = self._policy._replace(allow=(*self._policy.allow, rule.grants))
        wider = self._wider[rule] = also_allowed(tried, said_yes[0].action, judge, self._policy, after)
        found = {(item.finding.rule, reach) for item in said_yes for reach in Reach if reach <= item.finding.reach}
        return any(not found.issuperset(each.found) for each in wider)

    def _described(self, rule: Rule, answered: list[Question], held_back: list[Question]) -> Suggestion:
        mine = {id(question): question for question in answered if any(map(rule.covers, question.pending))}
        newest = sum(id(question) in mine for question in held_back)
        seen = {item.action.text for question in mine.values() for item in question.pending}
        wider = [each for each in self._wider[rule] if each.command not in seen][:_SHOWN]
        setting = "command_allowlist" if isinstance(rule.grants, GrantKey) else "approvals.allow"
        name, provoked = hashlib.sha256(rule.text.encode()).hexdigest()[:6], _provoked([*mine.values()])
        return Suggestion(name, rule.text, setting, len(mine), (newest, len(held_back)), tuple(wider), provoked)


def _pruned(chosen: list[Rule], questions: Sequence[Question]) -> list[Rule]:
    """Without those that the others make needless, the least useful first, and those that answer too little."""
    for rule in reversed(chosen):
        rest = [other for other in chosen if other is not rule]
        lost = [each for each in questions if each.allowed and _answers(chosen, each) and not _answers(rest, each)]
        chosen = chosen if len(lost) >= _MIN_ANSWERED else rest
    return chosen


@lru_cache(maxsize=1 << 16)  # the same commands come again and again
def _matches(entry: Entry, argv: tuple[str, ...]) -> bool:
    return entry.matches(argv, allows=True)


def _coverage(questions: dict[int, Question]) -> dict[Rule, dict[int, set[int]]]:
    """For each rule that can be made of the questions, and covers enough: which of their parts it covers."""
    alike: dict[str, list[tuple[int, int, Pending]]] = defaultdict(list)
    for number, question in questions.items():
        for place, item in enumerate(question.pending):
            alike["".join(item.finding.argv[:1]).rpartition("/")[2]].append((number, place, item))
    found: dict[Rule, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for items in alike.values():
        for rule in {rule: None for _, _, item in items for rule in _rules(item)}:
            for number, place, item in items:
                if rule.covers(item):
                    found[rule][number].add(place)
    return {rule: covered for rule, covered in found.items() if len(covered) >= _MIN_ANSWERED}


def _rules(item: Pending) -> Iterator[Rule]:
    """The rules that cover it: its key, its whole command, and that with the end of one word left open."""
    if item.key.reach in (Reach.TEMP, Reach.PROJECT):
        yield Rule(str(item.key), item.key)
    argv = item.finding.argv
    if item.action.kind.value != "command" or len(argv) < 2 or any(re.search(r"[*?\[]", word) for word in argv):
        return
    operands = [(place, word) for place, word in enumerate(argv) if place and word[:1] != "-"]
    stems = [(place, word[: end.end()]) for place, word in operands for end in re.finditer(r"[-/_.:](?=.)", word)]
    opened = [(*argv[:place], f"{stem}*", *argv[place + 1 :]) for place, stem in stems if len(stem) >= _MIN_STEM]
    for text in map(shlex.join, (argv, *opened)):
        try:
            yield Rule(text, allow_entries([text])[0])
        except BadEntry:
            continue


def _answers(rules: Sequence[Rule], question: Question) -> bool:
    return all(any(rule.covers(item) for rule in rules) for item in question.pending)


def _line(record: DecisionRecord) -> JsonDict:
    """A decision as a line of the history."""
    root = next((root for key in record.keys if (root := key.partition("@project:")[2])), record.cwd)
    where = {"where": [record.environment, False, True], "details": {"project": root}}
    return {**record._asdict(), "verdict": record.decision, **where}


def _provoked(questions: Sequence[Question]) -> str:
    """Why an agent could have brought the rule about by asking; empty when it hardly could."""
    if len({question.session for question in questions}) == 1:
        return "all of them were asked in one session"
    times = [question.at for question in questions]
    burst = max(sum(start <= at <= start + _BURST_SECONDS for at in times) for start in times)
    if burst < _MIN_BURST or 2 * burst <= len(times):
        return ""
    return f"{burst} of {len(times)} were asked within {_BURST_SECONDS // 60} minutes"


_TARGETS, _OPTIONS, _ENDINGS = (_TABLES[name].split() for name in ("targets", "options", "endings"))
_MAX_TRIED, _MAX_PER_USE = 150, 24
_WILD_TARGET = re.compile(r"(?:^|\s)(?:\S*\*\S*|\.)(?=\s|$)")


class Wider(NamedTuple):
    """A command that a rule would also allow, and the rules and reaches of what is found in it."""

    command: str
    found: frozenset[tuple[str, Reach]]

    @property
    def risk(self) -> tuple[int, int, bool]:
        """How far it goes, how much is found, and whether it names everything there."""
        reach = max(reach for _, reach in self.found)
        return reach, len(self.found), bool(reach and _WILD_TARGET.search(self.command))


def also_allowed(
    tried: Iterator[str], like: Action, judge: Callable[[Action], Judged], before: Policy, after: Policy
) -> list[Wider]:
    """Of the commands that are tried where `like` ran, those that only the policy `after` allows; the riskiest first."""
    wider = []
    for text in islice(dict.fromkeys(map(str.strip, tried)), _MAX_TRIED):
        judged = judge(like._replace(text=text))
        asked, ruling = (policy.rule(judged, "", granted=lambda _: False) for policy in (before, after))
        if asked.pending and ruling.refused is None and not ruling.pending:
            found = [(each.rule, each.reach) for each in judged.findings if each.severity is Severity.ASK]
            wider.append(Wider(text, frozenset(found)))
    return sorted(wider, key=lambda each: each.risk, reverse=True)


def like_entry(entry: Entry, rulebook: Rulebook) -> Iterator[str]:
    """Commands that begin as the entry does: with more options and targets, as root, elsewhere, and at the widest of its `*`."""
    choices = [[word[:-1] + end for end in _ENDINGS] if word[-1:] == "*" else [word] for word in entry.words]
    spelled = [list(words) for words in product(*choices)]
    first, *rest = spelled[min(1, len(spelled) - 1)]
    place = rest.index("--") if "--" in rest else len(rest)
    options = [*_options(entry, rulebook), *_OPTIONS]
    yield from (shlex.join([first, *rest[:place], option, *rest[place:]]) for option in options[-_MAX_TRIED // 2 :])
    yield from (shlex.join(spelled[0]), f"{shlex.join([first, *rest])} *")
    yield from (shlex.join(["sudo", first, *rest]), shlex.join([first, "-C", "/srv/data", *rest]))
    yield from (f"{shlex.join([first, *rest])} {target}" for target in _TARGETS)
    yield from map(shlex.join, spelled[1:])


def like_key(key: GrantKey, rulebook: Rulebook) -> Iterator[str]:
    """Commands that the key's rule finds: its examples, and its uses with every option and many targets."""
    rule = rulebook.rules.get(key.rule)
    if rule is not None:
        yield from rule.match
        for use in rule.uses:
            yield from islice(_spelled(use), _MAX_PER_USE)


def _options(entry: Entry, rulebook: Rulebook) -> Iterator[str]:
    """The options in uses of the same program and sub-command."""
    program = entry.words[0].rpartition("/")[2]
    for programs, *parts in (use.split() for rule in rulebook.rules.values() for use in rule.uses):
        named = [word for part in parts if part[0].isalpha() for word in part.split("|")]
        if program in programs.split("|") and (not named or not set(named).isdisjoint(entry.words)):
            given = (option for part in parts if part[0] == "-" for option in part.split("|"))
            yield from (option.replace("*", "").split(",")[0] for option in given if option not in entry.words)


def _spelled(use: str) -> Iterator[str]:
    """Command lines of one use: each choice of its words and options, with each of the targets, which vary fastest."""
    parts = [part for part in use.split() if part[0] not in "!{$@<>+" and part != "..."]
    choices = [[choice.replace("*", "x") for choice in part.split("|")[:8]] for part in parts]
    yield from map(" ".join, product(*choices, _TARGETS))

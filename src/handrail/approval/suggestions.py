"""Suggest the fewest narrow rules that would have answered your latest questions as you did.

A rule is an entry of `approvals.allow` that names a whole command, or a key of `command_allowlist` that stays in one project or
among temporary files. None allows what you ever denied, and none reaches further than what you said yes to.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

from ..judge.rules import builtin
from ..judge.values.assessment import Reach
from .action_review import Judge, builtin_assess
from .allowlist import BadEntry, Entry, allow_entries
from .gate import AUTOMATIC, HISTORY_NAME
from .grants import GrantKey
from .records import ActionHistory, is_cut
from .self_protection import SelfProtection, private_dirs
from .simulation import NOBODY_ASKED, recorded_action
from .widening import Wider, also_allowed, like_entry, like_key

if TYPE_CHECKING:
    from pathlib import Path

    from ..store.approvals import DecisionRecord
    from ..types import JsonDict
    from .policy import Pending, Policy

# Secrets, Handrail itself, what runs by itself later, and what can be anything by another name.
_NEVER = (
    *("cred.", "exfil.", "own.", "privilege.", "policy.", "mode.", "tool.", "hook.", "redirect.", "sched.", "persist."),
    *("perm.setuid", "container.escape", "git.config", "tail.protected_path"),
)
_NARROW = (Reach.TEMP, Reach.PROJECT)
_MIN_ANSWERED = 2
_SHOWN = 5
# So many of the questions in so short a time may be an agent that wants the rule.
_BURST_SECONDS, _MIN_BURST = 600, 3
_MIN_STEM = 3


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
    entry: Entry | None = None
    key: GrantKey | None = None

    def covers(self, item: Pending) -> bool:
        if self.key is not None:
            return self.key.covers(item.key)
        return self.entry is not None and _matches(self.entry, item.finding.argv)

    @property
    def narrowness(self) -> int:
        return 0 if self.key is not None else 1 if "*" in self.text else 2

    def added_to(self, policy: Policy) -> Policy:
        if self.key is not None:
            return policy._replace(allowlist=(*policy.allowlist, self.key))
        return policy._replace(allow=(*policy.allow, *([self.entry] if self.entry else [])))


class Suggester:
    """Reads the history in `state_dir` and the `decisions`, under the `policy` of today."""

    def __init__(self, policy: Policy, *, state_dir: Path, decisions: Iterable[DecisionRecord] = ()) -> None:
        self._policy = policy._replace(ask_disabled_by=None)
        self._judge = Judge(builtin_assess, SelfProtection(private_dirs()))
        self._history, self._decisions = ActionHistory(state_dir / HISTORY_NAME), decisions
        self._vetoed: set[str] = set()
        self._known_wider: dict[str, list[Wider]] = {}

    def suggest(self, last: int) -> Suggestions:
        asked = self._asked[-last:]
        older = asked[: len(asked) - len(asked) // 5]
        chosen = self._pruned(self._chosen(older), older)
        answered = [question for question in asked if question.allowed and _answers(chosen, question)]
        rules = [self._described(rule, answered, asked[len(older) :]) for rule in chosen]
        return Suggestions(len(asked), len(answered), sorted(rules, key=lambda each: -each.answered))

    @cached_property
    def _asked(self) -> list[Question]:
        """What a person answered, and what the policy of today would still ask."""
        lines = [line for line in self._history.lines() if "text" in line and "kind" in line and _by_person(line)]
        found = [self._question(line) for line in lines]
        return [question for question in found if question.pending]

    @cached_property
    def _denied(self) -> list[Question]:
        """Every no of a person that is still known, however old."""
        kept = [_line(record) for record in self._decisions if record.decision == "deny"]
        denied = [self._question(line) for line in kept if _by_person(line)]
        return [question for question in (*denied, *self._asked) if not question.allowed and question.pending]

    def _question(self, line: JsonDict) -> Question:
        allowed, tool = line["verdict"] != "deny", line["tool"]
        judged = self._judge.judge(recorded_action(line), tool, self._policy)
        ruling = self._policy.rule(judged, tool, granted=lambda _: False)
        if not allowed and (is_cut(line) or line["text"] == ""):
            # What exactly was denied is not known any more, so nothing of that kind is suggested.
            self._vetoed.update(item.finding.rule for item in ruling.pending)
            self._vetoed.update(key.rpartition("/")[2].partition("@")[0] for key in line.get("keys", ()))
        asked = tuple(item for item in ruling.pending if str(item.key) in line.get("keys", ()))
        return Question(line["at"], line.get("session") or "", allowed, asked or ruling.pending)

    def _chosen(self, questions: Sequence[Question]) -> list[Rule]:
        """Take the rule that answers most of what is left, the narrowest of equals, until none answers enough."""
        denied = self._denied  # read first: it says what is vetoed
        left = {
            number: set(range(len(question.pending)))
            for number, question in enumerate(questions)
            if question.allowed and all(map(self._may_be_allowed, question.pending))
        }
        coverage = _coverage([(number, questions[number]) for number in left])
        chosen: list[Rule] = []
        while coverage:
            gains = {rule: _gain(covered, left) for rule, covered in coverage.items()}
            best = max(coverage, key=lambda rule: (*gains[rule], rule.narrowness, rule.text))
            covered = coverage.pop(best)
            if gains[best][1] < _MIN_ANSWERED:
                break
            if any(_answers([*chosen, best], no) for no in denied) or self._goes_too_far(best, questions, covered):
                continue
            chosen.append(best)
            for number, items in covered.items():
                left[number] -= items
        return chosen

    def _may_be_allowed(self, item: Pending) -> bool:
        rule = item.finding.rule
        return item.key.can_last and not rule.startswith(_NEVER) and rule not in self._vetoed

    def _goes_too_far(self, rule: Rule, questions: Sequence[Question], covered: dict[int, set[int]]) -> bool:
        """Whether it allows something that is found by another rule, or goes further, than all that you said yes to."""
        said_yes = [questions[number].pending[place] for number, places in covered.items() for place in places]
        furthest: dict[str, Reach] = {}
        for item in said_yes:
            furthest[item.finding.rule] = max(item.finding.reach, furthest.get(item.finding.rule, Reach.NOWHERE))
        wider = self._wider(rule, said_yes[0])
        return any(name not in furthest or reach > furthest[name] for each in wider for name, reach in each.found)

    def _wider(self, rule: Rule, item: Pending) -> list[Wider]:
        if rule.text in self._known_wider:
            return self._known_wider[rule.text]
        rulebook = self._policy.rulebook or builtin()
        tried = like_entry(rule.entry, rulebook) if rule.entry is not None else iter(())
        if rule.key is not None:
            tried = like_key(rule.key, rulebook)
        judge = partial(self._judge.judge, tool="terminal", policy=self._policy)
        wider = also_allowed(tried, item.action, judge, self._policy, rule.added_to(self._policy))
        return self._known_wider.setdefault(rule.text, wider)

    @staticmethod
    def _pruned(chosen: list[Rule], questions: Sequence[Question]) -> list[Rule]:
        """Without those that the others make needless, the least useful first, and those that answer too little."""
        for rule in reversed(chosen):
            rest = [other for other in chosen if other is not rule]
            lost = [q for q in questions if q.allowed and _answers(chosen, q) and not _answers(rest, q)]
            if len(lost) < _MIN_ANSWERED:
                chosen = rest
        return chosen

    def _described(self, rule: Rule, answered: list[Question], held_back: list[Question]) -> Suggestion:
        mine = [question for question in answered if any(map(rule.covers, question.pending))]
        numbers = set(map(id, mine))
        newest = sum(id(question) in numbers for question in held_back)
        seen = {item.action.text for question in mine for item in question.pending}
        wider = [each for each in self._known_wider[rule.text] if each.command not in seen]
        setting = "command_allowlist" if rule.key is not None else "approvals.allow"
        name = hashlib.sha256(rule.text.encode()).hexdigest()[:6]
        return Suggestion(
            name, rule.text, setting, len(mine), (newest, len(held_back)), tuple(wider[:_SHOWN]), _provoked(mine)
        )


@lru_cache(maxsize=1 << 16)  # the same commands come again and again
def _matches(entry: Entry, argv: tuple[str, ...]) -> bool:
    return entry.matches(argv, allows=True)


def _coverage(questions: Sequence[tuple[int, Question]]) -> dict[Rule, dict[int, set[int]]]:
    """For each rule that can be made of the questions: which of their parts it covers."""
    places: dict[tuple[tuple[str, ...], GrantKey], list[tuple[int, int]]] = defaultdict(list)
    items: dict[tuple[tuple[str, ...], GrantKey], Pending] = {}
    for number, question in questions:
        for place, item in enumerate(question.pending):
            same = (item.finding.argv, item.key)
            places[same].append((number, place))
            items[same] = item
    by_program: dict[str, list[tuple[tuple[str, ...], GrantKey]]] = defaultdict(list)
    for same in items:
        by_program[_program(same[0])].append(same)
    found: dict[Rule, dict[int, set[int]]] = {}
    for rule in dict.fromkeys(rule for item in items.values() for rule in _rules(item)):
        covered: dict[int, set[int]] = defaultdict(set)
        alike = items if rule.entry is None else by_program[_program(rule.entry.words)]
        for same in alike:
            if rule.covers(items[same]):
                for number, place in places[same]:
                    covered[number].add(place)
        if len(covered) >= _MIN_ANSWERED:
            found[rule] = covered
    return found


def _program(argv: Sequence[str]) -> str:
    return argv[0].rpartition("/")[2] if argv else ""


def _rules(item: Pending) -> Iterator[Rule]:
    """The rules that cover it: its key, its whole command, and that with the end of one word left open."""
    if item.key.reach in _NARROW:
        yield Rule(str(item.key), key=item.key)
    argv = item.finding.argv
    if item.action.kind.value != "command" or len(argv) < 2 or any(re.search(r"[*?\[]", word) for word in argv):
        return
    operands = [(place, word) for place, word in enumerate(argv) if place and word[:1] != "-"]
    stems = [(place, word[: end.end()]) for place, word in operands for end in re.finditer(r"[-/_.:](?=.)", word)]
    opened = [(*argv[:place], f"{stem}*", *argv[place + 1 :]) for place, stem in stems if len(stem) >= _MIN_STEM]
    for words in (argv, *opened):
        text = shlex.join(words)
        try:
            yield Rule(text, entry=allow_entries([text])[0])
        except BadEntry:
            continue


def _gain(covered: dict[int, set[int]], left: dict[int, set[int]]) -> tuple[int, int]:
    """How many questions it answers, and how many it answers in part."""
    parts = [(left[number], items) for number, items in covered.items() if left[number] & items]
    return sum(wanted <= items for wanted, items in parts), len(parts)


def _answers(rules: Sequence[Rule], question: Question) -> bool:
    return all(any(rule.covers(item) for rule in rules) for item in question.pending)


def _by_person(line: JsonDict) -> bool:
    return line["by"] not in NOBODY_ASKED and line["by"] not in AUTOMATIC


def _line(record: DecisionRecord) -> JsonDict:
    """A decision as a line of the history."""
    fields = {name: getattr(record, name) for name in ("at", "tool", "kind", "text", "cwd", "by", "session", "keys")}
    roots = [root for key in record.keys if (root := key.partition("@project:")[2])]
    details = {"project": roots[0]} if roots else {}
    return {**fields, "verdict": record.decision, "where": [record.environment, False, True], "details": details}


def _provoked(questions: Sequence[Question]) -> str:
    """Why an agent could have brought the rule about by asking; empty when it hardly could."""
    if len({question.session for question in questions}) == 1:
        return "all of them were asked in one session"
    times = sorted(question.at for question in questions)
    burst = max(sum(start <= at <= start + _BURST_SECONDS for at in times) for start in times)
    if burst >= _MIN_BURST and 2 * burst > len(times):
        return f"{burst} of {len(times)} were asked within {_BURST_SECONDS // 60} minutes"
    return ""

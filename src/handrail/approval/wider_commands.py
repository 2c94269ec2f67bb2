"""Find the riskiest commands that a rule would also allow: its commands with other options, targets and sub-commands, taken
from the uses that the judge's rules name, and judged."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from itertools import islice, product
from typing import TYPE_CHECKING, NamedTuple

from ..judge.values.assessment import Reach, Severity

if TYPE_CHECKING:
    from ..judge.rules import Rulebook
    from ..protocols import Action
    from .allowlist import Entry
    from .grants import GrantKey
    from .policy import Judged, Policy

_TARGETS = (
    "* . src main ../other .git .env /tmp/x /tmp/* ~/Documents ~/.ssh/id_ed25519 ~/.config/handrail /etc/hosts /srv/data "
    "/var/lib / $TARGET"
).split()
# Options that many programs have, and that widen a command or send it elsewhere.
_OPTIONS = ("--all", "--host=other", "--context=other", "--force")
# What may stand for the `*` at the end of a word; the second is the plain one.
_ENDINGS = ("x:main", "x", "../../../..", "../../../../home", "../../../../etc")
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

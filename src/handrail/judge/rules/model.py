"""What a rule is: an id, how grave it is, why, the uses of programs it is about, and examples that prove it."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import NamedTuple

from ...errors import RuleError
from ..values.assessment import Reach, Severity

BLOCK, ASK, NOTE = Severity.BLOCK, Severity.ASK, Severity.NOTE
_ID = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)+")


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

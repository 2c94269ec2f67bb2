"""Which findings count inside a script that lies on the disk: what it does to its own work tree does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..rules import Effect, Rule
from ..values import paths
from ..values.assessment import Reach, Severity
from ..values.data_files import Words
from ..values.word_values import UNKNOWN

_WORDS = Words(__file__)
_FAR = (Reach.OUTSIDE, Reach.HOME, Reach.SYSTEM)
_UNREAD = frozenset(("dynamic", "parse", "limit", "text"))
_MAX_PROGRAM = 5_000
_MAX_TELLING = {"rce.reverse_shell": 2_000, "code.exec_computed": 3_000}


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

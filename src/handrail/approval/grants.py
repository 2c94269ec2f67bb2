"""The key of a grant: what a yes for longer than once covers, and nothing wider.

A key is a rule and how far its effect reaches. What stays in a project belongs to that project: a yes to deleting below
`/srv/app` does not cover deleting below another folder, in the home directory, or on another machine.
"""

from __future__ import annotations

import posixpath
from typing import NamedTuple

from ..judge.values.assessment import Reach

HERE = "local"
# The scope of a grant that ends with its process; other scopes have names that a later process can use again.
PROCESS_SCOPE = "process:"
# What these find can be anything the next time, so a yes to one says nothing about another.
_ANYTHING = ("dynamic.", "rce.", "parse.", "limit", "text.", "input.", "code.", "judge.")
_FAR = {
    Reach.NOWHERE: "",
    Reach.TEMP: "in folders for temporary files",
    Reach.PROJECT: "in any working directory",
    Reach.OUTSIDE: "anywhere outside the working directory",
    Reach.HOME: "anywhere in the home",
    Reach.SYSTEM: "anywhere in the system",
    Reach.UNKNOWN: "anywhere",
}


class GrantKey(NamedTuple):
    """`root` is the folder that the reach PROJECT means; empty in an entry that was written for every folder."""

    rule: str
    reach: Reach
    root: str = ""
    environment: str = HERE

    def __str__(self) -> str:
        where = "" if self.environment == HERE else f"{self.environment}/"
        root = f":{self.root}" if self.root else ""
        return f"{where}{self.rule}@{self.reach.name.lower()}{root}"

    def covers(self, other: GrantKey) -> bool:
        """Whether a grant of this key allows the other."""
        if (self.reach, self.environment) != (other.reach, other.environment):
            return False
        # A list of hosts covers each of them.
        if self.rule != other.rule and not other.rule.startswith(f"{self.rule}.host."):
            return False
        if not self.can_last:
            return False
        return not self.root or other.root == self.root or other.root.startswith(self.root.rstrip("/") + "/")

    @property
    def can_last(self) -> bool:
        """Whether it can be granted for longer than once."""
        return self.reach is not Reach.UNKNOWN and not can_be_anything(self.rule)

    def described(self, what: str, cwd: str) -> str:
        """What a longer grant covers, in words; `what` is what the rule finds."""
        here = self.root == posixpath.normpath(cwd or ".")
        far = "in this folder" if here else f"below {self.root}" if self.root else _FAR[self.reach]
        where = "" if self.environment == HERE else f"on {self.environment}"
        return " ".join(filter(None, [what, far, where]))


def can_be_anything(rule: str) -> bool:
    """Whether what the rule finds has no known bounds."""
    return rule.startswith(_ANYTHING)


def grant_key(rule: str, reach: Reach, *, root: str, environment: str) -> GrantKey:
    """`root` is the folder in which work is expected."""
    root = posixpath.normpath(root) if reach is Reach.PROJECT and root else ""
    if reach is Reach.PROJECT and not root.strip("/."):
        return GrantKey(rule, Reach.UNKNOWN, "", environment)  # a project that contains everything is not a bound
    return GrantKey(rule, reach, root, environment)


def parse_grant_key(text: str) -> GrantKey:
    """A key as it is written in `command_allowlist`. Raises ValueError that says what is wrong with it."""
    where, slash, rest = text.partition("/") if "/" in text.partition("@")[0] else ("", "", text)
    rule, at, far = rest.partition("@")
    name, _, root = far.partition(":")
    example = "such as fs.rm.recursive@project:/srv/app"
    if not at or not name:
        raise ValueError(f"{text!r} does not say how far it reaches; write rule@reach, {example}")
    if not rule.strip("*.? ") or "*" in rule:
        raise ValueError(f"{text!r} would allow every rule; name one, {example}")
    reaches = {reach.name.lower(): reach for reach in Reach if reach is not Reach.UNKNOWN}
    if name not in reaches:
        raise ValueError(f"{text!r}: {name!r} is not a reach; known: {', '.join(reaches)}")
    if can_be_anything(rule):
        raise ValueError(f"{text!r}: {rule} can be anything, and is asked about each time")
    if root and (reaches[name] is not Reach.PROJECT or not root.startswith("/")):
        raise ValueError(f"{text!r}: only `project` has a folder, and that is an absolute path, {example}")
    if slash and not where:
        raise ValueError(f"{text!r} starts with a slash; an environment's name goes before it")
    return GrantKey(rule, reaches[name], posixpath.normpath(root) if root else "", where or HERE)

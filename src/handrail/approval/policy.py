"""What is decided without asking: the floor, the deny list, what the user allowed, what cannot reach anything.

The order is fixed: floor, deny list, then what allows. `--yolo` and the mode `off` allow what would be asked, nothing more.
The mode of a session tightens or loosens the policy for that session.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, StrEnum
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ..errors import ConfigError, InvalidArguments
from ..judge.values.assessment import Finding, Reach, Severity
from ..protocols import Action, ActionKind
from ..settings.schema import Config
from .allowlist import (
    BadEntry,
    Entry,
    GrantKey,
    allow_entries,
    can_be_anything,
    deny_entries,
    grant_key,
    original_entry,
    parse_grant_key,
)

if TYPE_CHECKING:
    from ..judge.rules import Rule, Rulebook

T = TypeVar("T")

# These may hide something below the floor, so they are asked about even in the mode `off`.
_UNREAD = ("parse.", "limit", "judge.", "policy.")
# Rules that are not the judge's, and are about the machine where the action runs.
_HERE = ("judge.", "input.", "code.", "own.")
# What refuses every change while a session only plans.
PLAN_RULE = "mode.plan"
# In a container that has the project mounted, these can be on the host's side of the mount.
_MOUNTED = frozenset({Reach.PROJECT, Reach.OUTSIDE, Reach.HOME, Reach.UNKNOWN})


class DecidedBy(Enum):
    """What decided, when nobody was asked."""

    HARMLESS = "harmless"
    FLOOR = "floor"
    DENY_LIST = "deny list"
    ALLOW_LIST = "allow list"
    ISOLATED = "isolated"
    GRANT = "grant"
    OFF = "off"
    PLAN = "plan"
    YOLO = "yolo"


class Judged(NamedTuple):
    """An action and what was found in it."""

    action: Action
    findings: tuple[Finding, ...] = ()
    command_lines: tuple[Sequence[str], ...] = ()


class Pending(NamedTuple):
    """A finding that the policy leaves to an approver, and the key under which a longer yes would be kept."""

    finding: Finding
    key: GrantKey
    action: Action


class Ruling(NamedTuple):
    """The policy's decision on one action: refused, or allowed if nothing is `pending`, or to be asked."""

    judged: Judged
    by: DecidedBy
    refused: Finding | None = None
    pending: tuple[Pending, ...] = ()


class Policy(NamedTuple):
    """A user's settings, read and checked. `ask_disabled_by` says why nobody is asked; None when somebody is."""

    ask_disabled_by: DecidedBy | None = None
    smart: bool = False
    allowlist: tuple[GrantKey, ...] = ()
    ignored: tuple[ConfigError, ...] = ()  # what is wrong with entries that were left out
    allow: tuple[Entry, ...] = ()
    deny: tuple[Entry, ...] = ()
    ask_tools: tuple[str, ...] = ()
    rulebook: Rulebook | None = None  # None: the rules that come with Handrail

    def rule(self, judged: Judged, tool: str, *, granted: Callable[[Iterable[GrantKey]], bool]) -> Ruling:
        """`granted` tells whether all these keys were allowed for longer; a yes of it is one use."""
        for finding in judged.findings:
            if finding.severity is Severity.BLOCK:
                return Ruling(judged, DecidedBy.PLAN if finding.rule == PLAN_RULE else DecidedBy.FLOOR, finding)
        if self.deny and (denied := self._denied(judged, tool)) is not None:
            return Ruling(judged, DecidedBy.DENY_LIST, denied)
        found = [finding for finding in judged.findings if finding.severity is Severity.ASK]
        if self.deny and (maybe := self._maybe_denied(judged)) is not None:
            found.append(maybe)
        if not found:
            return Ruling(judged, DecidedBy.HARMLESS)
        reaching = [finding for finding in found if can_reach(finding, judged)]
        if not reaching:
            return Ruling(judged, DecidedBy.ISOLATED)
        left = self._not_allowed(judged, reaching, tool)
        if not left:
            return Ruling(judged, DecidedBy.ALLOW_LIST)
        if granted([item.key for item in left]):
            return Ruling(judged, DecidedBy.GRANT)
        if self.ask_disabled_by is not None:
            left = [item for item in left if item.finding.rule.startswith(_UNREAD)]
            if not left:
                return Ruling(judged, self.ask_disabled_by)
        return Ruling(judged, DecidedBy.HARMLESS, pending=tuple(left))

    def _denied(self, judged: Judged, tool: str) -> Finding | None:
        lines, text = judged.command_lines, judged.action.text
        for entry in self.deny:
            is_in_text = any(map(entry.matches, lines)) or (lines and entry.matches_text(text))
            if is_in_text or entry.matches_tool(tool):
                why = f"your deny list has {entry.text!r}"
                return Finding("policy.denied", Severity.BLOCK, why, (0, len(text)))
        return None

    def _maybe_denied(self, judged: Judged) -> Finding | None:
        for entry, argv in product(self.deny, judged.command_lines):
            if entry.may_match(argv):
                why = f"a part of it is not known before it runs; it may be {entry.text!r}, which your deny list has"
                span = (0, len(judged.action.text))
                return Finding("policy.unknown", Severity.ASK, why, span, tuple(argv), Reach.UNKNOWN)
        return None

    def _not_allowed(self, judged: Judged, findings: Iterable[Finding], tool: str) -> list[Pending]:
        action, left = judged.action, []
        for finding in findings:
            root = str(action.details.get("project") or action.cwd)
            key = grant_key(finding.rule, finding.reach, root=root, environment=action.environment)
            if any(allowed.covers(key) for allowed in self.allowlist):
                continue
            if any(entry.matches(finding.argv, allows=True) or entry.matches_tool(tool) for entry in self.allow):
                continue
            left.append(Pending(finding, key, action))
        return left


def read_policy(config: Config, *, yolo: bool = False, more_rules: Sequence[Rule] = ()) -> Policy:
    """Raises ConfigError for an entry that cannot be used. `more_rules` are those of plugins."""
    settings = config.approvals
    allowlist, commands, ignored = _allowlist(config.command_allowlist)
    return Policy(
        ask_disabled_by=DecidedBy.YOLO if yolo else DecidedBy.OFF if settings.mode == "off" else None,
        smart=settings.mode == "smart",
        allowlist=allowlist,
        ignored=ignored,
        allow=(*checked("approvals.allow", lambda: allow_entries(settings.allow)), *commands),
        deny=checked("approvals.deny", lambda: deny_entries(settings.deny)),
        ask_tools=settings.ask_tools,
        rulebook=checked("approval_rules", lambda: _rulebook(config, more_rules)),
    )


def _allowlist(texts: Sequence[str]) -> tuple[tuple[GrantKey, ...], tuple[Entry, ...], tuple[ConfigError, ...]]:
    """Grants, commands that the file of another agent allows, and entries of that form that mean nothing here: these allow
    nothing, and are no reason to stop everything."""
    grants: list[GrantKey] = []
    commands: list[Entry] = []
    ignored: list[ConfigError] = []
    for number, text in enumerate(texts):
        if "@" in text or not text.strip("*? ") or (" " not in text.strip() and "." in text):
            grants.append(checked("command_allowlist", partial(parse_grant_key, text)))
            continue
        try:
            found = original_entry(text)
        except BadEntry as error:
            ignored.append(ConfigError(str(error), key=f"command_allowlist[{number}]"))
            continue
        commands += [found] if isinstance(found, Entry) else []
        grants += [] if isinstance(found, Entry) else found
    return tuple(grants), tuple(commands), tuple(ignored)


def _rulebook(config: Config, more: Sequence[Rule]) -> Rulebook | None:
    if not config.approval_rules and not more:
        return None
    from ..judge.assessor import assess
    from ..judge.rules.custom import configured

    return configured(config.approval_rules, more, assess=assess)


def strictest(policy: Policy) -> Policy:
    """The policy inside an agent's own shell: all that denies, nothing that allows."""
    return Policy(deny=policy.deny, ask_tools=policy.ask_tools, rulebook=policy.rulebook)


def can_reach(finding: Finding, judged: Judged) -> bool:
    """Whether a finding can do harm outside the environment it runs in. An isolated environment contains local damage."""
    action = judged.action
    if not action.isolated or _acts_elsewhere(finding.rule):
        return True
    return action.reaches_host and (finding.reach in _MOUNTED or can_be_anything(finding.rule))


def _acts_elsewhere(rule_id: str) -> bool:
    """Whether a rule's effect is on another machine. A user's own rule might be."""
    from ..judge.rules import Effect, builtin

    rule = builtin().rules.get(rule_id)
    return rule.effect is Effect.REMOTE if rule is not None else not rule_id.startswith(_HERE)


def checked(key: str, read: Callable[[], T]) -> T:
    try:
        return read()
    except ConfigError:
        raise
    except BadEntry as error:
        raise ConfigError(str(error), key=f"{key}[{error.number}]") from None
    except ValueError as error:
        raise ConfigError(str(error), key=key) from None


_NO_FILE = re.compile(r"[0-9&]*>>?\s*/dev/null\b|[0-9]*>&[0-9-]")
_OPERANDS = "operands"
_CHANGES = frozenset(ActionKind) - {ActionKind.FILE_READ}


class Mode(StrEnum):
    """How much an agent may do by itself. The mode of a session comes from the person: no tool sets it, and a session without one
    has the mode of its runtime."""

    PLAN = "plan"
    ASK = "ask"
    AUTO = "auto"
    YOLO = "yolo"

    @property
    def next(self) -> Mode:
        modes = list(Mode)
        return modes[(modes.index(self) + 1) % len(modes)]


MEANINGS = {
    Mode.PLAN: "nothing that changes anything runs",
    Mode.ASK: "it asks before edits and commands",
    Mode.AUTO: "it asks before anything destructive",
    Mode.YOLO: "it never asks; blocked actions and your deny list still apply",
}


class Modes:
    """The mode of each session, and `default` for all others."""

    def __init__(self) -> None:
        self.default = Mode.AUTO
        self._sessions: dict[str, Mode] = {}

    def of(self, session_id: str | None, usual: Mode | None = None) -> Mode:
        """`usual` is for a session without a mode of its own in which somebody can be asked; see `usual_mode`."""
        return self._sessions.get(session_id or "", usual or self.default)

    def set(self, session_id: str, mode: Mode) -> None:
        self._sessions[session_id] = mode

    def inherit(self, child: str, parent: str) -> None:
        """A child agent has its parent's mode."""
        if parent in self._sessions:
            self._sessions[child] = self._sessions[parent]

    def forget(self, session_id: str) -> None:
        self._sessions.pop(session_id, None)

    def are_strict(self, session_id: str | None) -> bool:
        """Whether tools that name no actions are reviewed too."""
        return self.of(session_id) in (Mode.PLAN, Mode.ASK)


def usual_mode(profile: object) -> Mode:
    """The mode in which a conversation starts: where the kernel contains nothing, edits and commands ask."""
    return Mode.ASK if profile == "open" else Mode.AUTO


def read_mode(name: str) -> Mode:
    """Raises InvalidArguments."""
    try:
        return Mode(name.strip().lower())
    except ValueError:
        raise InvalidArguments(f"there is no mode {name!r}; choose plan, ask, auto or yolo") from None


def loosened(policy: Policy, mode: Mode) -> Policy:
    return policy._replace(ask_disabled_by=DecidedBy.YOLO) if mode is Mode.YOLO else policy


def with_mode(judged: Judged, tool: str, mode: Mode) -> Judged:
    """With what the mode adds: in `plan` a refusal, in `ask` a question."""
    action = judged.action
    if mode not in (Mode.PLAN, Mode.ASK) or action.kind not in _CHANGES or _only_reads(judged):
        return judged
    place = (0, len(action.text))
    if mode is Mode.PLAN:
        added = Finding(PLAN_RULE, Severity.BLOCK, "this session only plans: nothing may be changed yet", place)
    elif any(finding.severity is Severity.ASK for finding in judged.findings):
        return judged
    else:
        added = _question(judged, tool, place)
    return judged._replace(findings=(*judged.findings, added))


def _question(judged: Judged, tool: str, place: tuple[int, int]) -> Finding:
    action = judged.action
    if action.kind is ActionKind.FILE_WRITE:
        root = str(action.details.get("project") or action.cwd)
        inside = bool(root) and Path(action.text).is_relative_to(root)
        return Finding("mode.edit", Severity.ASK, "edits files", place, (), Reach.PROJECT if inside else Reach.OUTSIDE)
    if action.kind is ActionKind.COMMAND and judged.command_lines:
        programs = dict.fromkeys(re.sub(r"[^a-z0-9_-]+", "-", argv[0].lower()) for argv in judged.command_lines if argv)
        name = f"mode.command.{'+'.join(programs)}"
        return Finding(name, Severity.ASK, f"runs {' and '.join(programs)}", place, (), Reach.PROJECT)
    return Finding(f"mode.tool.{tool.lower()}", Severity.ASK, f"calls {tool}", place)


def _only_reads(judged: Judged) -> bool:
    """Whether a command changes nothing, as far as its text tells: readers only, and no output into a file."""
    if judged.action.kind is not ActionKind.COMMAND or not judged.command_lines:
        return False
    if any(finding.severity is not Severity.NOTE for finding in judged.findings):
        return False
    return ">" not in _NO_FILE.sub("", judged.action.text) and all(map(reads, judged.command_lines))


def reads(argv: Sequence[str]) -> bool:
    """Whether this command line is one of `reading_commands.txt`."""
    known = _readers()
    for length in (1, 2, 3):
        refused = known.get(tuple(argv[:length]))
        if refused is not None:
            allows_operands = _OPERANDS not in refused
            operands = [word for word in argv[length:] if not word.startswith(("-", "+"))]
            does_more = any(word == "?" or word.startswith(refused) for word in argv[length:])
            return not does_more and (allows_operands or not operands)
    return False


@cache
def _readers() -> dict[tuple[str, ...], tuple[str, ...]]:
    """Each command with the options that it must not have."""
    found = {}
    for line in Path(__file__).with_name("reading_commands.txt").read_text("utf-8").splitlines():
        words = line.split()
        if words and not line.startswith("#"):
            command = tuple(word for word in words if not word.startswith("!"))
            found[command] = tuple(word[1:] for word in words if word.startswith("!") and len(word) > 1)
    return found

"""What is decided without asking: the floor, the deny list, what the user allowed, what cannot reach anything.

The order is fixed: floor, deny list, then what allows. `--yolo` and the mode `off` allow what would be asked, nothing more.
A project's `.handrail/config.yaml` can only tighten what the user has configured, so it needs no trust.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ..config import Config, located, read_config
from ..config.files import read_text
from ..config.paths import POLICY_FILE, project_folder
from ..errors import ConfigError
from ..judge.values.assessment import Finding, Reach, Severity
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
    from collections.abc import Mapping
    from pathlib import Path

    from ..judge.rules import Rule, Rulebook
    from ..protocols import Action

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

    def asks_about_tool(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self.ask_tools)

    def _denied(self, judged: Judged, tool: str) -> Finding | None:
        lines, text = judged.command_lines, judged.action.text
        for entry in self.deny:
            if (
                entry.matches_tool(tool)
                or any(entry.matches(argv) for argv in lines)
                or (lines and entry.matches_text(text))
            ):
                why = f"your deny list has {entry.text!r}"
                return Finding("policy.denied", Severity.BLOCK, why, (0, len(text)))
        return None

    def _maybe_denied(self, judged: Judged) -> Finding | None:
        for entry in self.deny:
            for argv in judged.command_lines:
                if entry.may_match(argv):
                    why = (
                        f"a part of it is not known before it runs; it may be {entry.text!r}, which your deny list has"
                    )
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
        allow=(*_checked("approvals.allow", lambda: allow_entries(settings.allow)), *commands),
        deny=_checked("approvals.deny", lambda: deny_entries(settings.deny)),
        ask_tools=settings.ask_tools,
        rulebook=_checked("approval_rules", lambda: _rulebook(config, more_rules)),
    )


def _allowlist(texts: Sequence[str]) -> tuple[tuple[GrantKey, ...], tuple[Entry, ...], tuple[ConfigError, ...]]:
    """Grants, commands that the file of another agent allows, and entries of that form that mean nothing here: these allow
    nothing, and are no reason to stop everything."""
    grants: list[GrantKey] = []
    commands: list[Entry] = []
    ignored: list[ConfigError] = []
    for number, text in enumerate(texts):
        if "@" in text or not text.strip("*? ") or (" " not in text.strip() and "." in text):
            grants.append(_checked("command_allowlist", partial(parse_grant_key, text)))
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
    from ..judge import assess
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


def _checked(key: str, read: Callable[[], T]) -> T:
    try:
        return read()
    except ConfigError:
        raise
    except BadEntry as error:
        raise ConfigError(str(error), key=f"{key}[{error.number}]") from None
    except ValueError as error:
        raise ConfigError(str(error), key=key) from None


_APPROVALS, _RULES = "approvals", "approval_rules"
_TIGHTEN = ("deny", "ask_tools")


def policy_file(start: Path | None = None) -> Path | None:
    """The policy file of the current project, which need not exist. None outside of projects."""
    folder = project_folder(start)
    return None if folder is None else folder / POLICY_FILE


def project_settings(path: Path) -> Config:
    """What a project's file adds. Raises ConfigError for one that does more than tighten."""
    text = read_text(path)
    if text is None:
        return Config()
    from ..config.yaml_document import parse

    _check(parse(text, path=str(path)).value or {}, path)
    project = read_config(path)
    _check_entries(project, path)
    return project


def tightened(config: Config, project: Config | None) -> Config:
    """The user's settings with the project's added."""
    if project is None:
        return config
    approvals = dataclasses.replace(
        config.approvals,
        deny=(*config.approvals.deny, *project.approvals.deny),
        ask_tools=(*config.approvals.ask_tools, *project.approvals.ask_tools),
    )
    # A rule of the user's is not replaced by a weaker one of the same name.
    rules = {**project.approval_rules, **config.approval_rules}
    return dataclasses.replace(config, approvals=approvals, approval_rules=rules)


def _check_entries(project: Config, path: Path) -> None:
    try:
        deny_entries(project.approvals.deny)
    except BadEntry as error:
        raise located(ConfigError(str(error), key=f"{_APPROVALS}.deny[{error.number}]"), path) from None


def _check(settings: Mapping[str, Any], path: Path) -> None:
    can = f"a project's file can have {_APPROVALS}.{', '.join(_TIGHTEN)} and {_RULES}, and nothing that allows"
    for key, value in settings.items() if isinstance(settings, dict) else ():
        if key not in (_APPROVALS, _RULES):
            raise ConfigError(can, path=str(path), key=str(key))
        wrong = [name for name in value or () if key == _APPROVALS and name not in _TIGHTEN]
        if wrong:
            raise ConfigError(can, path=str(path), key=f"{key}.{wrong[0]}")

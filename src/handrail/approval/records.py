"""Record what passed the gate: each decision in full, and a log of every action, one line each, so that another policy can
be tried on it; both without secrets."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.safe_text import secret_values
from ..config.store import read_config
from ..errors import ConfigError
from ..protocols import Action, ActionKind
from ..store.approvals import DecisionRecord
from ..types import JsonDict
from .action_review import Judge, SelfProtection, builtin_assess, private_dirs
from .display import without_secrets
from .policy import DecidedBy, Policy, read_policy

if TYPE_CHECKING:
    from ..protocols import Answer, ApprovalRequest
    from ..store.approvals import ApprovalStore
    from ..types import ToolContext
    from .policy import Pending, Ruling

HISTORY_NAME = "actions.jsonl"
_MAX_TEXT = 2000
# What judging an action again needs to know of it.
_KEPT_DETAILS = ("project", "language", "destructive", "foreground", "command", "echo", "rule", "why")


class Records:
    """`history` None keeps only the decisions."""

    def __init__(self, history: ActionHistory | None) -> None:
        self._history = history

    def close(self) -> None:
        if self._history is not None:
            self._history.close()

    @cached_property
    def _secrets(self) -> tuple[str, ...]:
        return secret_values()  # looked up once: most actions are harmless and must not wait for it

    def ruled(self, ruling: Ruling, context: ToolContext) -> None:
        """One line in the history, for what needed no answer."""
        if self._history is not None:
            verdict = "deny" if ruling.refused is not None else "allow"
            action = ruling.judged.action
            self._history.add(self._line(action, context.tool, context.session_id, verdict, ruling.by._value_))

    def decided(self, store: ApprovalStore, ruling: Ruling, context: ToolContext) -> None:
        keys = tuple(f"{finding.rule}@{finding.reach.name.lower()}" for finding in ruling.judged.findings)
        no = ruling.refused
        decided = {
            "decision": "allow" if no is None else "deny",
            "by": ruling.by.value,
            "why": "" if no is None else no.why,
        }
        store.decisions.add(self._decision(ruling.judged.action, context, keys, **decided))

    def answered(
        self, store: ApprovalStore, request: ApprovalRequest, answer: Answer, left: Sequence[Pending], *, seconds: float
    ) -> None:
        """A decision in the log and, for each action, a line in the history."""
        keys = tuple(concern.key for concern in request.concerns)
        decided = {"decision": answer.decision.value, "by": answer.by, "why": answer.why}
        if answer.edited:
            decided |= {"decision": "edit", "why": f"changed to: {self._text(answer.edited)}"}
        more = {**decided, "seconds": seconds, "request": request.id or None}
        store.decisions.add(self._decision(request, request, keys, **more))
        if self._history is None:
            return
        for action in {id(item.action): item.action for item in left}.values():
            self._history.add(self._line(action, request.tool, request.session_id, answer.decision.value, answer.by))

    def _decision(
        self,
        what: Action | ApprovalRequest,
        asker: ToolContext | ApprovalRequest,
        keys: tuple[str, ...],
        **decided: Any,
    ) -> DecisionRecord:
        text, session, task = self._text(what.text), asker.session_id, asker.task_id
        return DecisionRecord(
            asker.tool, what.kind.value, text, what.cwd, what.environment, session, task, keys, **decided
        )

    def _line(self, action: Action, tool: str, session: str | None, verdict: str, by: str) -> JsonDict:
        is_password = action.details.get("echo") is False
        line: JsonDict = {
            "at": round(time.time(), 3),
            "tool": tool,
            "kind": action.kind._value_,
            "text": "" if is_password else without_secrets(action.text, values=self._secrets)[0],
            "cwd": action.cwd,
            "verdict": verdict,
            "by": by,
        }
        if session:
            line["session"] = session
        if action.environment != "local" or action.isolated or not action.reaches_host:
            line["where"] = [action.environment, action.isolated, action.reaches_host]
        details = {name: action.details[name] for name in _KEPT_DETAILS if name in action.details}
        return {**line, "details": details} if details else line

    def _text(self, text: str) -> str:
        masked = without_secrets(text)[0]
        return masked if len(masked) <= _MAX_TEXT else f"{masked[:_MAX_TEXT]}… ({len(masked):,} characters)"


log = logging.getLogger(__name__)

_WRITES_BETWEEN_CHECKS = 64
_MAX_HISTORY_TEXT = 4000
_encoder = json.JSONEncoder(separators=(",", ":"))


class ActionHistory:
    """An append-only file, one write per line: a few microseconds, and intact after a kill.
    At half of `max_bytes` it replaces the previous old file, and a new one is started."""

    def __init__(self, path: Path, *, max_bytes: int = 16 << 20) -> None:
        self.path = path
        self._old = path.with_name(path.name + ".old")
        self._max_bytes = max_bytes
        self._file = -1
        self._process = 0
        self._until_check = 0
        self._is_broken = False

    def add(self, line: JsonDict) -> None:
        """Never fails: harmless actions must not stop because a disk is full. The problem is logged once."""
        text = line["text"]
        if len(text) > _MAX_HISTORY_TEXT:
            line = {**line, "text": text[:_MAX_HISTORY_TEXT], "cut": len(text)}
        data = _encoder.encode(line).encode() + b"\n"
        try:
            if self._until_check <= 0 or self._process != os.getpid():
                self._check()
            self._until_check -= 1
            os.write(self._file, data)
        except OSError as error:
            if not self._is_broken:
                log.warning("the history of actions cannot be written to %s: %s", self.path, error.strerror)
            self._is_broken = True

    def lines(self) -> Iterator[JsonDict]:
        """The recorded actions, oldest first. A line that was cut off by a full disk is skipped."""
        for path in (self._old, self.path):
            with contextlib.suppress(FileNotFoundError), path.open(encoding="utf-8", errors="replace") as file:
                for text in file:
                    with contextlib.suppress(ValueError):
                        line = json.loads(text)
                        if isinstance(line, dict):
                            yield line

    def close(self) -> None:
        if self._file >= 0 and self._process == os.getpid():
            os.close(self._file)
        self._file, self._until_check = -1, 0

    def _check(self) -> None:
        """Reopen the current file: another process may have rotated it, or it is time to."""
        self.close()
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            if self.path.stat().st_size > self._max_bytes // 2:
                os.replace(self.path, self._old)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._file = os.open(self.path, flags, 0o600)
        self._process, self._until_check, self._is_broken = os.getpid(), _WRITES_BETWEEN_CHECKS, False


NOBODY_ASKED = frozenset(by.value for by in DecidedBy)


class Trial(NamedTuple):
    """One action: what was decided, and what the policy would decide: allow, ask or deny."""

    at: float
    tool: str
    text: str
    was: str
    would: str
    rules: list[str]

    @property
    def is_changed(self) -> bool:
        """An answer, yes or no, counts as `ask`."""
        return self.would != ("ask" if self.was.startswith("asked") else self.was)


def counts_of(trials: Sequence[Trial]) -> dict[str, int]:
    decisions = [trial.would for trial in trials]
    counted = {name: decisions.count(name) for name in ("allow", "ask", "deny")}
    return {"actions": len(decisions), "changed": sum(trial.is_changed for trial in trials), **counted}


def simulate_policy(policy_path: str, *, state_dir: Path) -> list[Trial]:
    """Judge the history in `state_dir` under a policy file. Raises ConfigError for a policy that cannot be used."""
    if not Path(policy_path).is_file():
        raise ConfigError("is not there; give a file with `approvals:` in it", path=policy_path)
    policy = read_policy(read_config(policy_path))
    judge = Judge(builtin_assess, SelfProtection(private_dirs()))
    lines = ActionHistory(state_dir / HISTORY_NAME).lines()
    return [_trial(line, judge, policy) for line in lines if "text" in line and "kind" in line]


def recorded_action(line: JsonDict) -> Action:
    """The action that a line of the history is about."""
    environment, isolated, reaches_host = line.get("where", ["local", False, True])
    details = line.get("details", {})
    kind, text, cwd = ActionKind(line["kind"]), line["text"], line.get("cwd", "")
    return Action(kind, text, cwd, environment, isolated, reaches_host, details)


def _trial(line: JsonDict, judge: Judge, policy: Policy) -> Trial:
    tool = line["tool"]
    judged = judge.judge(recorded_action(line), tool, policy)
    ruling = policy.rule(judged, tool, granted=lambda _: False)
    would = "deny" if ruling.refused is not None else "ask" if ruling.pending else "allow"
    rules = sorted({finding.rule for finding in judged.findings})
    # `allow` and `deny` are the policy's; the other verdicts are an approver's answers.
    is_policys = line["verdict"] in ("allow", "deny") and line["by"] in NOBODY_ASKED
    was = str(line["verdict"]) if is_policys else f"asked ({line['verdict']})"
    return Trial(line["at"], tool, line["text"], was, would, rules)

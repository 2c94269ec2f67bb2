"""Judge the recorded history again under another policy. Nothing runs, nobody is asked, nothing is recorded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..config import read_config
from ..errors import ConfigError
from ..protocols import Action, ActionKind
from .action_review import Judge, builtin_assess
from .gate import HISTORY_NAME
from .policy import DecidedBy, Policy, read_policy
from .records import ActionHistory
from .self_protection import SelfProtection, private_dirs

if TYPE_CHECKING:
    from ..types import JsonDict


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


class Simulation(NamedTuple):
    trials: list[Trial]

    def counts(self) -> dict[str, int]:
        decisions = [trial.would for trial in self.trials]
        counted = {name: decisions.count(name) for name in ("allow", "ask", "deny")}
        return {"actions": len(decisions), "changed": sum(trial.is_changed for trial in self.trials), **counted}


def simulate_policy(policy_path: str, *, state_dir: Path) -> Simulation:
    """Judge the history in `state_dir` under a policy file. Raises ConfigError for a policy that cannot be used."""
    if not Path(policy_path).is_file():
        raise ConfigError("is not there; give a file with `approvals:` in it", path=policy_path)
    policy = read_policy(read_config(policy_path))
    judge = Judge(builtin_assess, SelfProtection(private_dirs()))
    lines = ActionHistory(state_dir / HISTORY_NAME).lines()
    return Simulation([_trial(line, judge, policy) for line in lines if "text" in line and "kind" in line])


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
    return Trial(line["at"], tool, line["text"], _was(line), would, rules)


def _was(line: JsonDict) -> str:
    """`allow` and `deny` are the policy's; the other verdicts are an approver's answers."""
    if line["verdict"] in ("allow", "deny") and line["by"] in NOBODY_ASKED:
        return str(line["verdict"])
    return f"asked ({line['verdict']})"

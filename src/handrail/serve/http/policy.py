"""The policy: its rules, checking a command, simulating a policy on past actions."""

import os
import tempfile

from ...approval.display import pieces
from ...approval.records import counts_of, simulate_policy
from ...config.paths import state_dir
from ...errors import ConfigError
from ...judge import assess
from ...judge.rules.custom import configured
from ...judge.rules.rulebook import Rulebook
from ...types import JsonDict
from ..endpoint import Endpoint, HttpError, RequestContext
from .shapes import ANYTHING, TEXT, bounded, loose, many, record

_RULES = record(rules=many(loose(id=TEXT, severity=TEXT, why=TEXT)))
_CHECKED = loose(verdict=TEXT, findings=many(ANYTHING), pieces=many(ANYTHING))
_COMMAND = record(("command",), command=bounded(1_000_000), cwd=bounded(4096))
_SIMULATED = record(counts=ANYTHING, changed=many(ANYTHING))


@Endpoint("GET", "/v1/policy/rules", _RULES)
def rules(context: RequestContext) -> JsonDict:
    """Every rule about commands, with examples that match and that do not."""
    found = []
    for rule in _rulebook(context).rules.values():
        examples = {"match": list(rule.match), "spare": list(rule.not_match)}
        found.append({"id": rule.id, "severity": rule.severity.value, "why": rule.why, **examples})
    return {"rules": found}


@Endpoint("POST", "/v1/policy/check", _CHECKED, body=_COMMAND)
def check(context: RequestContext) -> JsonDict:
    """What a command would do, and the verdict. Nothing is run."""
    command, cwd = context.body["command"], context.body.get("cwd") or os.getcwd()
    assessment = assess(command, cwd=cwd, rulebook=_rulebook(context))
    spans = [each.span for each in assessment.findings if each.severity.value != "note"]
    return {**assessment.as_dict(), "pieces": [each._asdict() for each in pieces(command, spans)]}


def _rulebook(context: RequestContext) -> Rulebook:
    """The rules that the server's gate uses now."""
    settings = context.served.app.gate.settings
    return settings.policy().rulebook or configured(settings.config.approval_rules, assess=assess)


@Endpoint("POST", "/v1/policy/simulate", _SIMULATED, body=record(policy=bounded(1_000_000)))
def simulate(context: RequestContext) -> JsonDict:
    """Simulate a policy, given as the text of a config.yaml, on past actions."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
        file.write(context.body["policy"])
        file.flush()
        try:
            trials = simulate_policy(file.name, state_dir=state_dir(context.served.app.config.home))
        except ConfigError as error:
            raise HttpError(422, "invalid_policy", str(error).replace(file.name, "the policy")) from None
    changed = [trial._asdict() for trial in trials if trial.is_changed]
    return {"counts": counts_of(trials), "changed": changed[-1000:]}

"""The policy: its rules, checking a command, simulating a policy on past actions."""

from __future__ import annotations

import asyncio
import os
import tempfile

from ...approval.display import pieces
from ...approval.records import simulate_policy
from ...config.paths import state_dir
from ...errors import ConfigError
from ...judge import assess
from ...judge.rules.custom import configured
from ...judge.rules.rulebook import Rulebook
from ...types import JsonDict
from ..endpoint import Endpoint, HttpError, RequestContext
from .shapes import ANYTHING, TEXT, bounded, loose, many, record


async def rules(context: RequestContext) -> JsonDict:
    """Every rule about commands, with examples that match and that do not."""
    return {"rules": await asyncio.to_thread(_rules, context)}


def _rules(context: RequestContext) -> list[JsonDict]:
    return [
        {
            "id": rule.id,
            "severity": rule.severity.value,
            "why": rule.why,
            "match": list(rule.match),
            "spare": list(rule.not_match),
        }
        for rule in _rulebook(context).rules.values()
    ]


async def check(context: RequestContext) -> JsonDict:
    """What a command would do, and the verdict. Nothing is run."""
    return await asyncio.to_thread(_check, context)


def _check(context: RequestContext) -> JsonDict:
    command, cwd = context.body["command"], context.body.get("cwd") or os.getcwd()
    assessment = assess(command, cwd=cwd, rulebook=_rulebook(context))
    spans = [each.span for each in assessment.findings if each.severity.value != "note"]
    return {**assessment.as_dict(), "pieces": [each._asdict() for each in pieces(command, spans)]}


def _rulebook(context: RequestContext) -> Rulebook:
    """The rules that the server's gate uses now."""
    settings = context.served.app.gate.settings
    return settings.policy().rulebook or configured(settings.config.approval_rules, assess=assess)


async def simulate(context: RequestContext) -> JsonDict:
    """Simulate a policy, given as the text of a config.yaml, on past actions."""
    return await asyncio.to_thread(_simulate, context.body["policy"], context.served.app.config.home)


def _simulate(policy: str, home: str) -> JsonDict:
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
        file.write(policy)
        file.flush()
        try:
            found = simulate_policy(file.name, state_dir=state_dir(home))
        except ConfigError as error:
            raise HttpError(422, "invalid_policy", str(error).replace(file.name, "the policy")) from None
    changed = [trial._asdict() for trial in found.trials if trial.is_changed]
    return {"counts": found.counts(), "changed": changed[-1000:]}


ENDPOINTS = (
    Endpoint("GET", "/v1/policy/rules", rules, answer=record(rules=many(loose(id=TEXT, severity=TEXT, why=TEXT)))),
    Endpoint(
        "POST",
        "/v1/policy/check",
        check,
        body=record(("command",), command=bounded(1_000_000), cwd=bounded(4096)),
        answer=loose(verdict=TEXT, findings=many(ANYTHING), pieces=many(ANYTHING)),
    ),
    Endpoint(
        "POST",
        "/v1/policy/simulate",
        simulate,
        body=record(policy=bounded(1_000_000)),
        answer=record(counts=ANYTHING, changed=many(ANYTHING)),
    ),
)

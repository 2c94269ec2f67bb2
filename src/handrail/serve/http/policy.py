"""What asks and what is blocked: the rules, a command on trial, a policy tried on what happened."""

from __future__ import annotations

import asyncio
import os
import tempfile

from ...config import load_config
from ...errors import ConfigError
from ...types import JsonDict
from ..endpoint import Endpoint, HttpError, RequestContext
from .shapes import ANYTHING, TEXT, bounded, loose, many, record


async def rules(_: RequestContext) -> JsonDict:
    """Every rule about commands, with commands that it finds and commands that it spares."""
    return {"rules": await asyncio.to_thread(_rules)}


def _rules() -> list[JsonDict]:
    from ...judge.rules.custom import configured

    return [
        {
            "id": rule.id,
            "severity": rule.severity.value,
            "why": rule.why,
            "match": list(rule.match),
            "spare": list(rule.spare),
        }
        for rule in configured(load_config()).rules.values()
    ]


async def check(context: RequestContext) -> JsonDict:
    """What a command would do, and whether it may. Nothing is run."""
    return await asyncio.to_thread(_check, context.body["command"], context.body.get("cwd") or os.getcwd())


def _check(command: str, cwd: str) -> JsonDict:
    from ...approval.display import pieces
    from ...approval.project_policy import policy_file, tightened
    from ...judge.assess import assess
    from ...judge.rules.custom import configured

    assessment = assess(command, cwd=cwd, rulebook=configured(tightened(load_config(), policy_file())))
    spans = [each.span for each in assessment.findings if each.severity.value != "note"]
    return {**assessment.as_dict(), "pieces": [each._asdict() for each in pieces(command, spans)]}


async def simulate(context: RequestContext) -> JsonDict:
    """Try a policy, as the text of a config.yaml, on what really happened."""
    return await asyncio.to_thread(_simulate, context.body["policy"])


def _simulate(policy: str) -> JsonDict:
    from ...approval.simulation import simulated

    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
        file.write(policy)
        file.flush()
        try:
            found = simulated(file.name)
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

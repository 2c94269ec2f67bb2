"""What a server asks of us while one of its tools runs: the person, the model, and where to work. Both protocol families."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from handrail.agent.sampling import sampler_of
from handrail.config import McpServerConfig
from handrail.errors import ModelError
from handrail.protocols import Decision, ModelReply
from handrail.runtime.dispatch import Runtime
from handrail.testing import RecordingApprover, ScriptedModel, ScriptedPerson

from ..support import error_in
from .conftest import Connect


def content(outcome: Any) -> Any:
    return json.loads(outcome)["content"]


def test_a_person_who_says_yes_fills_in_the_form(connect: Connect, runtime: Runtime, plain: McpServerConfig) -> None:
    connect(plain=plain)
    runtime.approver = approver = RecordingApprover([Decision.ONCE])
    runtime.person = ScriptedPerson(["soup", "yes"])
    assert content(runtime.handle("mcp__plain__order", {})) == "soup, spicy"
    (request,) = approver.requests
    assert "What would you like?" in request.reason
    assert request.tool == "mcp__plain__order"


def test_where_nobody_fills_in_what_is_needed_the_server_hears_no(
    connect: Connect, runtime: Runtime, plain: McpServerConfig
) -> None:
    connect(plain=plain)
    runtime.approver = RecordingApprover([Decision.ONCE])
    assert content(runtime.handle("mcp__plain__order", {})) == "decline"


@pytest.mark.parametrize("decisions", [[], [Decision.DENY], None])
def test_no_yes_is_a_no(connect: Connect, runtime: Runtime, plain: McpServerConfig, decisions: Any) -> None:
    connect(plain=plain)
    runtime.approver = None if decisions is None else RecordingApprover(decisions)
    runtime.person = ScriptedPerson(["soup", "yes"])
    assert content(runtime.handle("mcp__plain__order", {})) == "decline"


def test_a_server_that_may_not_ask_is_told_that_we_cannot(
    connect: Connect, runtime: Runtime, plain: McpServerConfig
) -> None:
    connect(plain=dataclasses.replace(plain, elicitation=False))
    runtime.approver = approver = RecordingApprover([Decision.ONCE])
    assert error_in(runtime.handle("mcp__plain__order", {}))
    assert not approver.requests


def test_the_model_is_asked_where_the_settings_allow_it(
    connect: Connect, runtime: Runtime, plain: McpServerConfig
) -> None:
    tools = connect(plain=dataclasses.replace(plain, sampling=True))
    model = ScriptedModel([ModelReply("Rain.")])
    tools.ask_model_by(sampler_of([model]))
    assert content(runtime.handle("mcp__plain__think", {})) == f"{type(model).__name__}: Rain."
    (sent,) = model.sent
    assert [dict(each) for each in sent.messages] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is the weather?"},
    ]


def test_the_model_is_not_asked_by_default(connect: Connect, runtime: Runtime, plain: McpServerConfig) -> None:
    tools = connect(plain=plain)
    model = ScriptedModel([ModelReply("Rain.")])
    tools.ask_model_by(sampler_of([model]))
    assert error_in(runtime.handle("mcp__plain__think", {}))
    assert not model.sent


def test_without_a_model_the_server_is_told_so(connect: Connect, runtime: Runtime, plain: McpServerConfig) -> None:
    connect(plain=dataclasses.replace(plain, sampling=True))
    assert "no model" in error_in(runtime.handle("mcp__plain__think", {}))["error"]


def test_the_next_model_is_asked_when_one_fails(connect: Connect, runtime: Runtime, address: str) -> None:
    class Broken:
        def reply(self, messages: Any, tools: Any) -> ModelReply:
            raise ModelError("it is out")

    tools = connect(plain=McpServerConfig(url=address, sampling=True))
    tools.ask_model_by(sampler_of([Broken(), ScriptedModel([ModelReply("Sun.")])]))
    assert "Sun." in content(runtime.handle("mcp__plain__think", {}))


def test_a_server_is_told_of_the_folders_that_are_listed_and_of_no_others(
    connect: Connect, runtime: Runtime, plain: McpServerConfig, tmp_path: Path
) -> None:
    connect(plain=dataclasses.replace(plain, roots=(str(tmp_path),)), shy=plain)
    assert content(runtime.handle("mcp__plain__places", {})) == tmp_path.as_uri()
    assert error_in(runtime.handle("mcp__shy__places", {}))

"""What a server asks of us while one of its tools runs: the person, the model, and where to work. Both protocol families."""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from handrail.agent.agent_factory import sampler_of
from handrail.approval.gate import ApprovalGate
from handrail.approval.requests import QueueApprover
from handrail.errors import ModelError
from handrail.plugins.hook_manager import HookManager
from handrail.protocols import Answer, ApprovalRequest, Decision, ModelReply
from handrail.runtime.dispatch import Runtime
from handrail.settings.services import McpServerConfig
from handrail.testing import RecordingApprover, ScriptedModel, ScriptedPerson

from ..support import error_in, wait_until
from .conftest import Connect


def content(outcome: Any) -> Any:
    return json.loads(outcome)["content"]


@pytest.fixture
def gate() -> Iterator[ApprovalGate]:
    """The real one: a server's question passes it as everything does that a person is asked about."""
    gate = ApprovalGate()
    yield gate
    gate.close()


def test_a_person_who_says_yes_fills_in_the_form(connect: Connect, runtime: Runtime, plain: McpServerConfig) -> None:
    connect(plain=plain)
    runtime.approver = approver = RecordingApprover([Decision.ONCE])
    runtime.person = ScriptedPerson(["soup", "yes"])
    assert content(runtime.handle("mcp__plain__order", {})) == "soup, spicy"
    (request,) = approver.requests
    assert request.tool == "mcp__plain__order"
    assert (request.text, request.reason) == ("What would you like?", "the MCP server plain asks this")
    assert request.offers == (Decision.ONCE, Decision.DENY)
    assert request.expires_at > time.time()


def test_it_is_asked_where_the_call_was_made(connect: Connect, runtime: Runtime, plain: McpServerConfig) -> None:
    """An approver that belongs to a loop, such as the one of an MCP client, is asked on that loop and in that call."""
    connect(plain=plain)
    client = contextvars.ContextVar("client", default="nobody")
    asked: list[tuple[str, asyncio.AbstractEventLoop]] = []

    class AtClient:
        async def decide(self, request: ApprovalRequest) -> Decision:
            asked.append((client.get(), asyncio.get_running_loop()))
            return Decision.ONCE

    async def call() -> Any:
        client.set("me")
        return asyncio.get_running_loop(), await runtime.ahandle("mcp__plain__order", {})

    runtime.approver, runtime.person = AtClient(), ScriptedPerson(["soup", "-"])
    loop, outcome = asyncio.run(call())
    assert content(outcome) == "soup, mild"
    assert asked == [("me", loop)]


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


def test_a_question_can_be_answered_from_the_queue(
    connect: Connect, runtime: Runtime, plain: McpServerConfig, gate: ApprovalGate
) -> None:
    connect(plain=plain)
    runtime.approver, runtime.person = QueueApprover(), ScriptedPerson(["soup", "no"])
    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(runtime.handle, "mcp__plain__order", {})
        wait_until(gate.store.pending)
        (waiting,) = gate.store.pending()
        gate.store.answer(waiting.request.id, Answer(Decision.ONCE, "someone"))
        assert content(call.result(60)) == "soup, mild"


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
    tools.connections.requests.sampler = sampler_of([model], HookManager().invoke)
    assert content(runtime.handle("mcp__plain__think", {})) == f"{type(model).__name__}: Rain."
    (sent,) = model.sent
    assert [dict(each) for each in sent.messages] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is the weather?"},
    ]


def test_the_model_is_not_asked_by_default(connect: Connect, runtime: Runtime, plain: McpServerConfig) -> None:
    tools = connect(plain=plain)
    model = ScriptedModel([ModelReply("Rain.")])
    tools.connections.requests.sampler = sampler_of([model], HookManager().invoke)
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
    tools.connections.requests.sampler = sampler_of(
        [Broken(), ScriptedModel([ModelReply("Sun.")])], HookManager().invoke
    )
    assert "Sun." in content(runtime.handle("mcp__plain__think", {}))


def test_a_server_is_told_of_the_folders_that_are_listed_and_of_no_others(
    connect: Connect, runtime: Runtime, plain: McpServerConfig, tmp_path: Path
) -> None:
    connect(plain=dataclasses.replace(plain, roots=(str(tmp_path),)), shy=plain)
    assert content(runtime.handle("mcp__plain__places", {})) == tmp_path.as_uri()
    assert error_in(runtime.handle("mcp__shy__places", {}))
